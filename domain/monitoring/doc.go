// Package monitoring has the rules of the monitoring API: tokens and their
// scopes, request budgets, observations of sources and their minute summaries,
// and memory.
package monitoring
