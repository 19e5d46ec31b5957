package publisher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/edge/outbox"
	"millrace/edge/publisher"
)

// instant confirms at once: what remains is the publisher's own work.
type instant struct{}

type confirmed struct{}

var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (confirmed) Done() <-chan struct{} { return always }
func (confirmed) Error() error          { return nil }

func (instant) Connect(context.Context) error         { return nil }
func (instant) Send(string, []byte) publisher.Receipt { return confirmed{} }
func (instant) Disconnect()                           {}

// BenchmarkDrain measures how fast a backlog leaves the outbox when the broker
// takes no time: scan, read, check, stamp, encode, delete.
func BenchmarkDrain(b *testing.B) {
	for _, files := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			root := filepath.Join(b.TempDir(), "outbox")
			dir, err := outbox.Open(root, outbox.WithoutSync())
			require.NoError(b, err)
			body, err := json.Marshal(envelope(strings.Repeat("x", 60)))
			require.NoError(b, err)
			config := publisher.Defaults()
			config.Rate = 0
			for b.Loop() {
				b.StopTimer()
				for i := range files {
					require.NoError(b, os.WriteFile(filepath.Join(root, fmt.Sprintf("m%06d.json", i)), body, 0o600))
				}
				b.StartTimer()
				result, err := publisher.New(config, dir, instant{}, slog.New(slog.DiscardHandler)).Once(b.Context())
				require.NoError(b, err)
				require.Equal(b, files, result.Published)
			}
			b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}
