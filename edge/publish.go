package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"millrace/edge/outbox"
	"millrace/edge/publisher"
	"millrace/edge/uplink"
	"millrace/platform/mqtt"
)

// outboxSettings say where the outbox is.
type outboxSettings struct {
	OutboxDir string `name:"outbox" help:"Directory of the outbox." default:"/var/lib/aegis/outbox" env:"MILLRACE_OUTBOX_DIR,AEGIS_OUTBOX_DIR"`
}

// publishSettings say how the outbox is published. In file names and the client
// id, {factory} stands for the factory that is simulated.
type publishSettings struct {
	InstanceID string  `name:"instance-id" help:"Written into each message as data_plane_instance_id. Default: edge-iot-publisher-{hostname}." env:"MILLRACE_DATA_PLANE_INSTANCE_ID,AEGIS_DATA_PLANE_INSTANCE_ID" placeholder:"ID"`
	Backoff    seconds `help:"Seconds between passes over the outbox." default:"5" env:"MILLRACE_PUBLISHER_BACKOFF_SECONDS,AEGIS_PUBLISHER_BACKOFF_SECONDS"`
	MaxBackoff seconds `help:"Most seconds between passes while nothing is published." default:"60" env:"MILLRACE_PUBLISHER_MAX_BACKOFF_SECONDS,AEGIS_PUBLISHER_MAX_BACKOFF_SECONDS"`
	Window     int     `help:"Most unconfirmed messages, 1 to 100 (the limit of AWS IoT Core)." default:"20" env:"MILLRACE_PUBLISHER_WINDOW"`
	MaxRate    int     `help:"Most messages a second; 0 is no limit. AWS IoT Core discards what exceeds 100 on a connection." default:"90" env:"MILLRACE_PUBLISHER_MAX_RATE"`

	Endpoint   string  `name:"iot-endpoint" help:"Host, or host:port, of the broker. Required to publish." env:"MILLRACE_IOT_ENDPOINT,AEGIS_IOT_ENDPOINT" placeholder:"HOST"`
	Port       int     `name:"iot-port" help:"Port, when the endpoint has none." default:"8883" env:"MILLRACE_IOT_PORT,AEGIS_IOT_PORT"`
	ClientID   string  `name:"iot-client-id" help:"MQTT client id; must be unique. Default: the instance id and a random suffix." env:"MILLRACE_IOT_CLIENT_ID,AEGIS_IOT_CLIENT_ID" placeholder:"ID"`
	CAFile     string  `name:"iot-ca-file" help:"PEM file of the authority that signed the broker's certificate. Required to publish." env:"MILLRACE_IOT_CA_FILE,AEGIS_IOT_CA_FILE" placeholder:"FILE"`
	CertFile   string  `name:"iot-cert-file" help:"PEM file of the factory's certificate. Required to publish." env:"MILLRACE_IOT_CERT_FILE,AEGIS_IOT_CERT_FILE" placeholder:"FILE"`
	KeyFile    string  `name:"iot-key-file" help:"PEM file of the certificate's private key. Required to publish." env:"MILLRACE_IOT_KEY_FILE,AEGIS_IOT_KEY_FILE" placeholder:"FILE"`
	KeepAlive  seconds `name:"iot-keepalive" help:"Seconds between signs of life on an idle connection." default:"60" env:"MILLRACE_IOT_KEEPALIVE_SECONDS,AEGIS_IOT_KEEPALIVE_SECONDS"`
	Timeout    seconds `name:"iot-timeout" help:"Seconds that connecting and a confirmation may take." default:"10" env:"MILLRACE_IOT_TIMEOUT_SECONDS,AEGIS_IOT_TIMEOUT_SECONDS"`
	MinDelay   seconds `name:"iot-reconnect-min-delay" help:"Seconds before the first attempt to connect again." default:"1" env:"MILLRACE_IOT_RECONNECT_MIN_DELAY_SECONDS,AEGIS_IOT_RECONNECT_MIN_DELAY_SECONDS"`
	MaxDelay   seconds `name:"iot-reconnect-max-delay" help:"Most seconds between attempts to connect." default:"60" env:"MILLRACE_IOT_RECONNECT_MAX_DELAY_SECONDS,AEGIS_IOT_RECONNECT_MAX_DELAY_SECONDS"`
	MQTTClient string  `name:"iot-mqtt-client" help:"One persistent connection, or (raw) one for each message." enum:"persistent,raw" default:"persistent" env:"MILLRACE_IOT_MQTT_CLIENT,AEGIS_IOT_MQTT_CLIENT"`
}

const (
	rawClient = "raw"
	maxWindow = 100
)

// check reports everything that is missing or out of range.
func (s publishSettings) check() error {
	var problems []error
	for _, required := range []struct{ value, name string }{
		{s.Endpoint, "ENDPOINT"}, {s.CAFile, "CA_FILE"}, {s.CertFile, "CERT_FILE"}, {s.KeyFile, "KEY_FILE"},
	} {
		if required.value == "" {
			problems = append(problems, fmt.Errorf("MILLRACE_IOT_%s: is required", required.name))
		}
	}
	if s.Window < 1 || s.Window > maxWindow {
		problems = append(problems, fmt.Errorf("MILLRACE_PUBLISHER_WINDOW: must be 1 to %d", maxWindow))
	}
	if s.MaxRate < 0 {
		problems = append(problems, errors.New("MILLRACE_PUBLISHER_MAX_RATE: must not be negative"))
	}
	for _, positive := range []struct {
		value seconds
		name  string
	}{
		{s.Backoff, "PUBLISHER_BACKOFF"}, {s.KeepAlive, "IOT_KEEPALIVE"}, {s.Timeout, "IOT_TIMEOUT"}, {s.MinDelay, "IOT_RECONNECT_MIN_DELAY"},
	} {
		if positive.value <= 0 {
			problems = append(problems, fmt.Errorf("MILLRACE_%s_SECONDS: must be positive", positive.name))
		}
	}
	if s.MaxBackoff < s.Backoff {
		problems = append(problems, errors.New("MILLRACE_PUBLISHER_MAX_BACKOFF_SECONDS: must not be less than the backoff"))
	}
	if s.MaxDelay < s.MinDelay {
		problems = append(problems, errors.New("MILLRACE_IOT_RECONNECT_MAX_DELAY_SECONDS: must not be less than the least delay"))
	}
	return errors.Join(problems...)
}

// publisher makes a publisher with a connection of its own.
func (s publishSettings) publisher(factoryID, hostname string, box publisher.Outbox, log *slog.Logger) (*publisher.Publisher, error) {
	instance := s.InstanceID
	if instance == "" {
		instance = strings.TrimSuffix("edge-iot-publisher-"+hostname, "-")
	}
	clientID := s.ClientID
	if clientID == "" {
		clientID = mqtt.UniqueID(instance)
	}
	of := func(text string) string { return strings.ReplaceAll(text, factoryMark, factoryID) }
	link, err := uplink.New(uplink.Config{
		Endpoint: s.Endpoint, Port: s.Port, ClientID: of(clientID),
		CAFile: of(s.CAFile), CertFile: of(s.CertFile), KeyFile: of(s.KeyFile),
		KeepAlive: s.KeepAlive.duration(), Timeout: s.Timeout.duration(),
		MinDelay: s.MinDelay.duration(), MaxDelay: s.MaxDelay.duration(),
		PerMessage: s.MQTTClient == rawClient,
	}, log)
	if err != nil {
		return nil, err
	}
	config := publisher.Defaults()
	config.InstanceID = of(instance)
	config.Timeout = s.Timeout.duration()
	config.Backoff, config.MaxBackoff = s.Backoff.duration(), s.MaxBackoff.duration()
	config.Window, config.Rate = s.Window, s.MaxRate
	if s.MQTTClient == rawClient {
		config.Window = 1
	}
	return publisher.New(config, box, link, log), nil
}

// publishCommand publishes one outbox.
type publishCommand struct {
	outboxSettings
	publishSettings

	Once bool `help:"Make one pass over the outbox and end; fails when something could not be published." xor:"mode"`
	Loop bool `help:"Publish until stopped (the default)." xor:"mode"`
}

// Validate reports everything that is wrong with the settings.
func (c *publishCommand) Validate() error { return c.check() }

var errLeftOver = errors.New("messages are left in the outbox")

// Run publishes until the context ends, or once.
func (c *publishCommand) Run(ctx context.Context, s site) error {
	box, unlock, err := openToPublish(c.OutboxDir, s.log)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := c.publisher("", hostname(), box, s.log)
	if err != nil {
		return err
	}
	p.Observe = observer(s.registry)
	if !c.Once {
		s.log.Info("publishing", "outbox", c.OutboxDir)
		p.Loop(ctx)
		return nil
	}
	result, err := p.Once(ctx)
	p.Transport.Disconnect()
	s.log.Info("published", "published", result.Published, "quarantined", result.Quarantined, "failed", result.Failed)
	if err == nil && result.Failed > 0 {
		err = errLeftOver
	}
	return err
}

// leftoverAge is how old an unfinished file must be before it is certain that
// its writer is gone.
const leftoverAge = time.Hour

// openToPublish opens an outbox whose only publisher we are.
func openToPublish(root string, log *slog.Logger, options ...outbox.Option) (*outbox.Dir, func(), error) {
	box, err := outbox.Open(root, options...)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := box.Lock()
	if err != nil {
		return nil, nil, err
	}
	removed, err := box.Sweep(time.Now().Add(-leftoverAge))
	if err != nil {
		log.Warn("unfinished files not removed", "error", err)
	} else if removed > 0 {
		log.Info("unfinished files of killed writers removed", "files", removed)
	}
	return box, unlock, nil
}
