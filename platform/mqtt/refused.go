package mqtt

import (
	"fmt"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// RefusedError means that the broker answered the connection attempt with a
// refusal (the return code of MQTT 3.1.1's CONNACK, section 3.2.2.3).
type RefusedError struct {
	Code byte
}

var refusals = map[byte]string{
	1: "unacceptable protocol version",
	2: "client id rejected",
	3: "server unavailable",
	4: "bad user name or password",
	5: "not authorised",
}

// Error names the code and its meaning.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("broker refused the connection: %s (code %d)", refusals[e.Code], e.Code)
}

// connectError is the error of a failed attempt: a RefusedError where the broker
// answered.
func connectError(token paho.Token, err error) error {
	connect, ok := token.(*paho.ConnectToken)
	if !ok {
		return err
	}
	if _, known := refusals[connect.ReturnCode()]; !known {
		return err
	}
	return &RefusedError{Code: connect.ReturnCode()}
}
