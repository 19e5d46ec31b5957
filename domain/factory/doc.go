// Package factory has the rules of factory telemetry: what a message is, how it
// is normalised, how a factory's current state follows from it, how healthy the
// data pipeline is and how risky the factory. It does no I/O and knows no clock.
//
// Scores run from 0 to 100 and higher is safer.
package factory
