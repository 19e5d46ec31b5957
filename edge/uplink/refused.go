package uplink

import "millrace/platform/mqtt"

// RefusedError means that the broker answered the connection attempt with a
// refusal.
type RefusedError = mqtt.RefusedError
