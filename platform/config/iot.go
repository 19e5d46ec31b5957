package config

import (
	"errors"
	"fmt"

	"millrace/platform/mqtt"
)

// IoT says how the devices of factories are reached. Without an endpoint they
// are not.
type IoT struct {
	Endpoint string `name:"iot-endpoint" help:"Host, or host:port, of the broker that reaches the devices of factories; without it no job can be sent." env:"MILLRACE_IOT_ENDPOINT" placeholder:"HOST"`
	Port     int    `name:"iot-port" help:"Port of the broker, when the endpoint has none." default:"8883" env:"MILLRACE_IOT_PORT"`
	CAFile   string `name:"iot-ca-file" help:"PEM file of the authority that signed the broker's certificate." env:"MILLRACE_IOT_CA_FILE" placeholder:"FILE"`
	CertFile string `name:"iot-cert-file" help:"PEM file of our certificate, which may publish to aegis/+/jobs/+ only." env:"MILLRACE_IOT_CERT_FILE" placeholder:"FILE"`
	KeyFile  string `name:"iot-key-file" help:"PEM file of the certificate's private key." env:"MILLRACE_IOT_KEY_FILE" placeholder:"FILE"`
	ClientID string `name:"iot-client-id" help:"Beginning of the MQTT client id; a random suffix keeps workers apart." default:"millrace-worker" env:"MILLRACE_IOT_CLIENT_ID"`
}

// Validate refuses a broker that can't be reached, everything in one error. The
// files are read when a connection is made: they may come later, and be renewed.
func (i IoT) Validate() error {
	if i.Endpoint == "" {
		return nil
	}
	var problems []error
	for variable, value := range map[string]string{
		"MILLRACE_IOT_CA_FILE": i.CAFile, "MILLRACE_IOT_CERT_FILE": i.CertFile, "MILLRACE_IOT_KEY_FILE": i.KeyFile,
	} {
		if value == "" {
			problems = append(problems, fmt.Errorf("%s: is required with MILLRACE_IOT_ENDPOINT", variable))
		}
	}
	if _, _, err := i.broker().Address(); err != nil {
		problems = append(problems, fmt.Errorf("MILLRACE_IOT_ENDPOINT: %w", err))
	}
	if err := mqtt.CheckClientID(mqtt.UniqueID(i.ClientID)); err != nil {
		problems = append(problems, fmt.Errorf("MILLRACE_IOT_CLIENT_ID: %w", err))
	}
	return errors.Join(problems...)
}

func (i IoT) broker() mqtt.Broker {
	return mqtt.Broker{Endpoint: i.Endpoint, Port: i.Port, CAFile: i.CAFile, CertFile: i.CertFile, KeyFile: i.KeyFile}
}

// Publisher is a publisher at the broker, which connects when it is first used,
// and false when there is no broker.
func (i IoT) Publisher() (*mqtt.Publisher, bool) {
	if i.Endpoint == "" {
		return nil, false
	}
	return &mqtt.Publisher{Config: mqtt.Config{Broker: i.broker(), ClientID: mqtt.UniqueID(i.ClientID)}}, true
}
