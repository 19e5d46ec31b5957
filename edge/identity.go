package main

import (
	"crypto/rand"
	"encoding/hex"
	"os"
)

// factoryMark stands for a factory id in settings of several factories.
const factoryMark = "{factory}"

// hostname is the name of this machine, or nothing when it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// uniqueID adds a random suffix. Host name and process id would not do: clones
// of a virtual machine share the one, containers the other, and two clients
// with one id drop each other's connections for ever.
func uniqueID(prefix string) string {
	var suffix [4]byte
	_, _ = rand.Read(suffix[:]) // It never fails.
	return prefix + "-" + hex.EncodeToString(suffix[:])
}
