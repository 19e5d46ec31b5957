// Package artifact has the rules of the artifact lifecycle (ALP): states and
// their transitions, policies and their evaluation, decisions and who vouches
// for them, the provenance chain, and what is approved. It does no I/O and
// reads no clock.
package artifact
