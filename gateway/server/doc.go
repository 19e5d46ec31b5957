// Package server is the HTTP interface of Millrace: one router, the doors in
// front of it (tokens, scopes, budgets, limits) and the routes of each
// capability, one file each. A capability is a Routes function; every operation
// declares in one place who may call it.
package server
