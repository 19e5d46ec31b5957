// Package alert decides what is worth a notification. From a snapshot of a
// factory or of the cloud infrastructure it derives the alerts raised and the
// candidates suppressed, each with its reason; it knows how often an alert must
// be seen and how long it stays quiet after it was sent, and it words the
// messages. It does no I/O: storage/alert reserves, workflows/alert sequences.
package alert
