// Package observability has the rules of AI applications' signals: what a signal
// is, what it costs, how signals add up to hourly, daily and monthly counters
// (UOP seed, 7.1), what a latency histogram can tell, when an alert rule fires,
// and where all of it is kept in the governance table. It does no I/O.
package observability
