// Package cloudinfra has the rules of the cloud infrastructure's read model: what
// the collectors measure, how sections are judged, how both halves make one
// status and when a reader must not believe them any more (factory.md, section 5).
package cloudinfra
