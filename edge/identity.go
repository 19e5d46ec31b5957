package main

import "os"

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
