package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"
)

// device publishes the messages of one factory over one connection and notes
// which were acknowledged.
type device struct {
	t       testing.TB
	factory string
	client  mqtt.Client

	mu    sync.Mutex
	acked map[string]bool
}

func newDevice(t testing.TB, factory string) *device {
	t.Helper()
	var files certificates
	control(t, "/iot/factories/"+factory, &files)
	d := &device{t: t, factory: factory, acked: make(map[string]bool)}
	d.client = mqtt.NewClient(mqtt.NewClientOptions().
		AddBroker("ssl://" + os.Getenv("MILLRACE_IOT_ENDPOINT")).
		SetClientID("load-" + factory).
		SetTLSConfig(tlsConfig(t, files)).
		SetConnectRetry(true).SetConnectRetryInterval(500 * time.Millisecond).
		SetAutoReconnect(true).SetMaxReconnectInterval(time.Second))
	token := d.client.Connect()
	require.True(t, token.WaitTimeout(10*time.Second), "connect to the broker")
	require.NoError(t, token.Error())
	t.Cleanup(func() { d.client.Disconnect(100) })
	return d
}

func tlsConfig(t testing.TB, files certificates) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	require.NoError(t, err)
	ca, err := os.ReadFile(files.CA)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

// message is a factory_state message whose source time is the given instant, to
// the microsecond, so that its latency can be read off the stored state.
func (d *device) message(at time.Time) (id, body string) {
	stamp := at.UTC().Format("2006-01-02T15:04:05.000000Z")
	id = fmt.Sprintf("%s:factory_state:n1:%s", d.factory, stamp)
	body = fmt.Sprintf(`{"data_plane_instance_id":"load","environment_type":"vm-mac","factory_id":%q,"input_module_type":"dummy","message_id":%q,"node_id":"n1","payload":{"aggregation_window_seconds":3,"ai_result":{"abnormal_sound":"none","bend_score":0,"fall_score":0,"fire_score":0,"sample_count":1},"sensor":{"humidity_percent_avg":46.49,"pressure_hpa_avg":1013.15,"sample_count":1,"temperature_celsius_avg":21.84}},"published_at":%q,"schema_version":"0.1.0","source_timestamp":%q,"source_type":"factory_state"}`,
		d.factory, id, stamp, stamp)
	return id, body
}

// publish sends one message and notes its acknowledgement, without waiting.
func (d *device) publish(id, body string, acks *sync.WaitGroup) {
	token := d.client.Publish("aegis/"+d.factory+"/factory_state", 1, false, body)
	acks.Go(func() {
		if token.WaitTimeout(60*time.Second) && token.Error() == nil {
			d.mu.Lock()
			d.acked[id] = true
			d.mu.Unlock()
		}
	})
}

// flood publishes perSecond messages in all for a while, spread over the
// devices, and waits for the acknowledgements.
func flood(devices []*device, perSecond int, duration time.Duration) (published int) {
	var acks sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); published++ {
		d := devices[published%len(devices)]
		id, body := d.message(time.Now())
		d.publish(id, body, &acks)
		<-tick.C
	}
	acks.Wait()
	return published
}
