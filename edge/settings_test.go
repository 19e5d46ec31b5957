package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"millrace/edge/simulator"
)

// parse reads a command line under the given environment and nothing else of
// ours.
func parse(t *testing.T, env map[string]string, args ...string) (commands, error) {
	t.Helper()
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "MILLRACE_") || strings.HasPrefix(name, "AEGIS_") {
			t.Setenv(name, value) // It is restored after the test.
			require.NoError(t, os.Unsetenv(name))
		}
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	trimEnvironment()
	var cli commands
	parser, err := kong.New(&cli, kong.Name(program))
	require.NoError(t, err)
	_, err = parser.Parse(args)
	return cli, err
}

// required are the settings without which nothing can be published.
func required() map[string]string {
	return map[string]string{
		"MILLRACE_IOT_ENDPOINT": "broker.example.com", "MILLRACE_IOT_CA_FILE": "ca", "MILLRACE_IOT_CERT_FILE": "cert", "MILLRACE_IOT_KEY_FILE": "key",
	}
}

func TestPublishDefaults(t *testing.T) {
	cli, err := parse(t, required(), "publish")
	require.NoError(t, err)
	c := cli.Publish
	require.Equal(t, "/var/lib/aegis/outbox", c.OutboxDir)
	require.Equal(t, 8883, c.Port)
	require.Equal(t, 60*time.Second, c.KeepAlive.duration())
	require.Equal(t, 10*time.Second, c.Timeout.duration())
	require.Equal(t, time.Second, c.MinDelay.duration())
	require.Equal(t, 60*time.Second, c.MaxDelay.duration())
	require.Equal(t, 5*time.Second, c.Backoff.duration())
	require.Equal(t, 60*time.Second, c.MaxBackoff.duration())
	require.Equal(t, 20, c.Window)
	require.Equal(t, 90, c.MaxRate)
	require.False(t, c.Once)
}

func TestTheNamesOfTheEdgeContractAreTaken(t *testing.T) {
	cli, err := parse(t, map[string]string{
		"AEGIS_OUTBOX_DIR": "/outbox", "AEGIS_DATA_PLANE_INSTANCE_ID": "instance", "AEGIS_IOT_ENDPOINT": "aws.example.com",
		"AEGIS_IOT_PORT": "443", "AEGIS_IOT_CLIENT_ID": "client", "AEGIS_IOT_CA_FILE": "ca", "AEGIS_IOT_CERT_FILE": "cert", "AEGIS_IOT_KEY_FILE": "key",
		"AEGIS_IOT_KEEPALIVE_SECONDS": "30", "AEGIS_IOT_TIMEOUT_SECONDS": "3", "AEGIS_IOT_RECONNECT_MIN_DELAY_SECONDS": "2",
		"AEGIS_IOT_RECONNECT_MAX_DELAY_SECONDS": "20", "AEGIS_PUBLISHER_BACKOFF_SECONDS": "0.5", "AEGIS_PUBLISHER_MAX_BACKOFF_SECONDS": "7",
		"AEGIS_IOT_MQTT_CLIENT": "raw",
	}, "publish", "--once")
	require.NoError(t, err)
	require.Equal(t, publishCommand{
		outboxSettings: outboxSettings{OutboxDir: "/outbox"},
		publishSettings: publishSettings{
			InstanceID: "instance", Endpoint: "aws.example.com", Port: 443, ClientID: "client", CAFile: "ca", CertFile: "cert", KeyFile: "key",
			KeepAlive: seconds(30 * time.Second), Timeout: seconds(3 * time.Second), MinDelay: seconds(2 * time.Second), MaxDelay: seconds(20 * time.Second),
			Backoff: seconds(500 * time.Millisecond), MaxBackoff: seconds(7 * time.Second), Window: 20, MaxRate: 90, MQTTClient: "raw",
		},
		Once: true,
	}, cli.Publish)
}

func TestOurNamesWinAndValuesAreTrimmed(t *testing.T) {
	env := required()
	env["MILLRACE_IOT_ENDPOINT"] = " ours.example.com\n"
	env["AEGIS_IOT_ENDPOINT"] = "theirs.example.com"
	env["MILLRACE_IOT_PORT"] = "8884\n"
	env["MILLRACE_IOT_CLIENT_ID"] = " \n"
	env["AEGIS_IOT_CLIENT_ID"] = "client"
	cli, err := parse(t, env, "publish")
	require.NoError(t, err)
	require.Equal(t, "ours.example.com", cli.Publish.Endpoint)
	require.Equal(t, 8884, cli.Publish.Port)
	require.Equal(t, "client", cli.Publish.ClientID, "an empty variable counts as not set")
}

func TestAllProblemsAreReportedTogether(t *testing.T) {
	_, err := parse(t, map[string]string{
		"MILLRACE_PUBLISHER_WINDOW": "101", "MILLRACE_PUBLISHER_MAX_RATE": "-1", "MILLRACE_PUBLISHER_BACKOFF_SECONDS": "0",
		"MILLRACE_IOT_RECONNECT_MAX_DELAY_SECONDS": "0.5", "MILLRACE_IOT_TIMEOUT_SECONDS": "0",
	}, "publish")
	for _, name := range []string{
		"MILLRACE_IOT_ENDPOINT", "MILLRACE_IOT_CA_FILE", "MILLRACE_IOT_CERT_FILE", "MILLRACE_IOT_KEY_FILE", "MILLRACE_PUBLISHER_WINDOW",
		"MILLRACE_PUBLISHER_MAX_RATE", "MILLRACE_PUBLISHER_BACKOFF_SECONDS", "MILLRACE_IOT_RECONNECT_MAX_DELAY_SECONDS", "MILLRACE_IOT_TIMEOUT_SECONDS",
	} {
		require.ErrorContains(t, err, name)
	}
}

func TestOnceAndLoopExcludeEachOther(t *testing.T) {
	_, err := parse(t, required(), "publish", "--once", "--loop")
	require.ErrorContains(t, err, "can't be used together")
}

func TestSimulatingNeedsNoBrokerUnlessItPublishes(t *testing.T) {
	_, err := parse(t, nil, "simulate", "--factory", "factory-c")
	require.NoError(t, err)
	_, err = parse(t, nil, "simulate", "--factory", "factory-c", "--publish")
	require.ErrorContains(t, err, "MILLRACE_IOT_ENDPOINT: is required")
}

func TestSimulateRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown profile":            {[]string{"--profile", "factory-z"}, "--profile"},
		"unknown scenario":           {[]string{"--scenario", "flood"}, "--scenario"},
		"unknown drill":              {[]string{"--drill", "fire"}, "--drill"},
		"start without duration":     {[]string{"--start", "2026-11-30T00:00:00Z"}, "needs --duration"},
		"start no time":              {[]string{"--start", "now", "--duration", "1h"}, "RFC 3339"},
		"negative rate":              {[]string{"--rate=-1"}, "--rate"},
		"negative number":            {[]string{"--factories=-1"}, "--factories"},
		"one certificate for many":   {[]string{"--factories=2", "--publish"}, "MILLRACE_IOT_CERT_FILE: must contain {factory}"},
		"one client id for many":     {[]string{"--factories=2", "--publish", "--iot-client-id=x"}, "MILLRACE_IOT_CLIENT_ID: must contain {factory}"},
		"baseline with 3 decimals":   {[]string{"--temperature=24.505"}, "at most two decimals"},
		"interval that is no number": {[]string{"--ai-event-min=soon"}, "number of seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, required(), append([]string{"simulate"}, c.args...)...)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestOverridesChangeTheProfile(t *testing.T) {
	cli, err := parse(t, map[string]string{
		"AEGIS_FACTORY_ID":                     "factory-c",
		"AEGIS_DUMMY_AI_EVENT_MIN_SECONDS":     "10",
		"AEGIS_DUMMY_AI_EVENT_MAX_SECONDS":     "20",
		"AEGIS_DUMMY_SENSOR_EVENT_MIN_SECONDS": "11", "AEGIS_DUMMY_SENSOR_EVENT_MAX_SECONDS": "21",
		"AEGIS_DUMMY_SENSOR_EVENT_HOLD_SECONDS": "15",
		"AEGIS_DUMMY_INFRA_EVENT_MIN_SECONDS":   "12", "AEGIS_DUMMY_INFRA_EVENT_MAX_SECONDS": "22",
		"AEGIS_DUMMY_PIPELINE_GAP_EVENT_MIN_SECONDS": "13", "AEGIS_DUMMY_PIPELINE_GAP_EVENT_MAX_SECONDS": "23",
		"AEGIS_DUMMY_PIPELINE_GAP_MIN_SECONDS": "45", "AEGIS_DUMMY_PIPELINE_GAP_MAX_SECONDS": "55",
		"AEGIS_DUMMY_TEMPERATURE_BASELINE": "21.5", "AEGIS_DUMMY_TEMPERATURE_JITTER": "0.25",
		"AEGIS_DUMMY_HUMIDITY_BASELINE": "40", "AEGIS_DUMMY_HUMIDITY_JITTER": "1",
		"AEGIS_DUMMY_PRESSURE_BASELINE": "1000", "AEGIS_DUMMY_PRESSURE_JITTER": "2",
		"AEGIS_DUMMY_NODE_CPU_JITTER": "3", "AEGIS_DUMMY_NODE_MEMORY_JITTER": "4", "AEGIS_DUMMY_NODE_DISK_JITTER": "5",
		"AEGIS_DUMMY_SCENARIO": "nodes_down", "AEGIS_DUMMY_SCENARIO_DOWN_NODES": "factory-c-master,factory-c-worker",
	}, "simulate")
	require.NoError(t, err)
	o := cli.Simulate.options("factory-c", 9)
	require.Equal(t, simulator.ScenarioNodeDown, o.Scenario)
	require.Equal(t, []string{"factory-c-master", "factory-c-worker"}, o.DownNodes)
	require.EqualValues(t, 9, o.Sequence)
	p := o.Profile
	of := func(low, high time.Duration) simulator.Interval {
		return simulator.Interval{Min: low * time.Second, Max: high * time.Second}
	}
	require.Equal(t, of(10, 20), p.AI.Every)
	require.Equal(t, of(11, 21), p.Sensor.Every)
	require.Equal(t, 15*time.Second, p.Sensor.Hold)
	require.Equal(t, of(12, 22), p.Infra.Every)
	require.Equal(t, of(13, 23), p.Gap.Every)
	require.Equal(t, []simulator.Interval{of(45, 55), of(45, 55)}, p.Gap.Lengths)
	require.Equal(t, simulator.Band{Base: 21_50, Jitter: 25}, p.Temperature)
	require.Equal(t, simulator.Band{Base: 40_00, Jitter: 1_00}, p.Humidity)
	require.Equal(t, simulator.Band{Base: 1000_00, Jitter: 2_00}, p.Pressure)
	require.Equal(t, simulator.Usage{CPU: 3_00, Memory: 4_00, Disk: 5_00}, p.NodeJitter)
}

func TestProfilesByNameOfTheFactoryOrOfTheSetting(t *testing.T) {
	for _, c := range []struct{ factory, profile, want string }{
		{"factory-a", "", "factory-a"},
		{"factory-a", "factory-c", "factory-c"},
		{"plant-7", "", "factory-b"},
		{"plant-7", "factory-a", "factory-a"},
	} {
		command := simulateCommand{Factory: c.factory, Profile: c.profile}
		require.Equal(t, c.want, command.profile(c.factory).Name)
	}
}

func TestRateIsSharedByAllFactories(t *testing.T) {
	cli, err := parse(t, nil, "simulate", "--factories=10", "--rate=80", "--outbox=/var/load/outbox")
	require.NoError(t, err)
	c := cli.Simulate
	require.Len(t, c.factories(), 10)
	require.Equal(t, "factory-010", c.factories()[9])
	require.Equal(t, "/var/load/outbox/factory-010", c.outboxOf("factory-010"))
	perSecond := c.speed() * (1/simulator.StateInterval.Seconds() + 1/simulator.InfraInterval.Seconds())
	require.InDelta(t, 8, perSecond, 1e-9)
}

func TestSecondsWithAndWithoutUnit(t *testing.T) {
	for text, want := range map[string]time.Duration{"5": 5 * time.Second, "0.25": 250 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0} {
		var s seconds
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, s.duration())
	}
	for _, text := range []string{"", "-1", "-5s", "soon", "1e30", "5 s"} {
		var s seconds
		require.ErrorIs(t, s.UnmarshalText([]byte(text)), errSeconds, text)
	}
}
