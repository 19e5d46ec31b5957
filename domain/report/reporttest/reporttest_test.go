package reporttest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

var (
	start = time.Date(2025, 12, 31, 15, 0, 0, 0, time.UTC)
	end   = start.Add(24 * time.Hour)
)

type processed struct {
	SourceMessageID string                  `json:"source_message_id"`
	FactoryID       string                  `json:"factory_id"`
	SourceTimestamp time.Time               `json:"source_timestamp"`
	Risk            *factory.Risk           `json:"risk"`
	PipelineStatus  *factory.PipelineStatus `json:"pipeline_status"`
}

func count(all iter.Seq[Object]) map[string]int {
	counts := map[string]int{}
	for object := range all {
		counts[object.Dataset]++
	}
	return counts
}

func TestACalmDayHasEveryObject(t *testing.T) {
	day := FactoryDay{FactoryID: "factory-a", Start: start, End: end, Calm: true}
	require.Equal(t, map[string]int{"factory_state": 28800, "risk_score": 28800, "infra_state": 4320}, count(day.Objects()))
	require.Equal(t, map[string]int{"fast": 1440, "slow": 288}, count(CloudDay{Start: start, End: end, Calm: true}.Objects()))
}

func TestDrillsShowInTheObjects(t *testing.T) {
	day := FactoryDay{FactoryID: "factory-a", Start: start, End: end}
	zero, critical, injected, keys := 0, 0, 0, map[string]bool{}
	for object := range day.Objects() {
		require.False(t, keys[object.Key], object.Key)
		keys[object.Key] = true
		var p processed
		if json.Unmarshal(object.Body, &p) != nil {
			require.True(t, strings.HasSuffix(object.Key, "/broken.json"), object.Key)
			continue
		}
		if p.Risk != nil && p.Risk.Score.Sign() == 0 {
			require.True(t, Outage.In(p.SourceTimestamp.Sub(start)))
			zero++
		}
		if p.Risk != nil && p.PipelineStatus.Status == factory.Critical {
			critical++
		}
		if strings.Contains(string(object.Body), "ignore all previous instructions") {
			require.True(t, Stuck.In(p.SourceTimestamp.Sub(start)))
			injected++
		}
	}
	require.Equal(t, int(Outage.Length()/stateEvery), zero)
	require.Equal(t, int(Stuck.Length()/infraEvery), injected)
	require.Positive(t, critical)
}

func TestTheSameDayHasTheSameBytes(t *testing.T) {
	hour := start.Add(time.Hour)
	for name, day := range map[string]func() iter.Seq[Object]{
		"factory": func() iter.Seq[Object] {
			return FactoryDay{FactoryID: "factory-a", Start: start, End: hour}.Objects()
		},
		"cloud": func() iter.Seq[Object] { return CloudDay{Start: start, End: hour}.Objects() },
	} {
		again, stop := iter.Pull(day())
		for object := range day() {
			twin, ok := again()
			require.True(t, ok, name)
			require.Equal(t, object, twin, name)
		}
		stop()
	}
}

type memory struct {
	mu   sync.Mutex
	kept map[string]string
	full int
}

func (m *memory) Put(_ context.Context, key, _ string, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) == m.full {
		return errors.New("full")
	}
	m.kept[key] = string(body)
	return nil
}

func TestWriteStoresAllOrTellsWhyNot(t *testing.T) {
	day := CloudDay{Start: start, End: start.Add(time.Hour)}
	bucket := &memory{kept: map[string]string{}, full: 1000}
	written, err := Write(t.Context(), bucket, day.Objects(), 8)
	require.NoError(t, err)
	require.Len(t, bucket.kept, written)
	_, err = Write(t.Context(), &memory{kept: map[string]string{}, full: 10}, day.Objects(), 8)
	require.ErrorContains(t, err, "full")
}
