package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/pki"
)

// BenchmarkPublishToStores is the whole way of a message into the stores: client, broker, rules,
// object and queue, PUBACK; each client sends the next message when the last is acknowledged. It
// is the ceiling that the stand-ins put on any figure measured behind them.
func BenchmarkPublishToStores(b *testing.B) {
	for _, clients := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			_, env := onStack(b)
			env.makeBucket(b, "millrace-data")
			env.makeQueue(b, "millrace-telemetry")
			connected := make([]paho.Client, clients)
			for i := range connected {
				id := fmt.Sprintf("factory-%03d", i)
				connected[i] = env.connect(b, factoryFiles(b, env, id), "edge-"+id)
			}
			b.ResetTimer()
			publishAll(b, connected)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func factoryFiles(b *testing.B, env environment, id string) pki.Files {
	b.Helper()
	files, err := json.Marshal(env.mustControl(b, "/iot/factories/"+id, ""))
	require.NoError(b, err)
	var f pki.Files
	require.NoError(b, json.Unmarshal(files, &f))
	return f
}

// publishAll sends b.N messages of about 900 bytes over the clients.
func publishAll(b *testing.B, clients []paho.Client) {
	padding := strings.Repeat("x", 750)
	var wg sync.WaitGroup
	for i, client := range clients {
		wg.Go(func() {
			topic := fmt.Sprintf("aegis/factory-%03d/factory_state", i)
			for n := i; n < b.N; n += len(clients) {
				body := fmt.Sprintf(`{"message_id":"factory-%03d:factory_state:worker:%d","payload":{"padding":"%s"}}`, i, n, padding)
				token := client.Publish(topic, 1, false, body)
				if !token.WaitTimeout(30*time.Second) || token.Error() != nil {
					b.Errorf("message %d: %v", n, token.Error())
					return
				}
			}
		})
	}
	wg.Wait()
}
