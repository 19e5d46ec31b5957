// Package e2e runs the programs as users do, on the local stack, and counts what
// becomes of messages: end-to-end benchmarks and the soak test. It needs the
// programs in bin/ and runs under bin/local exec (make bench, make soak).
package e2e
