package broker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWhatIdentitiesMayPublish(t *testing.T) {
	tests := []struct {
		identity, topic string
		ok              bool
	}{
		{"factory-a", "aegis/factory-a/factory_state", true},
		{"factory-a", "aegis/factory-a/infra_state", true},
		{"factory-a", "aegis/factory-a/image_snapshot", true},
		{"factory-a", "aegis/factory-a/jobs/run-1/result", true},
		{"factory-a", "aegis/factory-a/jobs/run-1", false},
		{"factory-a", "aegis/factory-a/other", false},
		{"factory-a", "aegis/factory-a/factory_state/x", false},
		{"factory-a", "aegis/factory-b/factory_state", false},
		{"factory-a", "aegis/+/factory_state", false},
		{"factory-a", "aegis/factory-a/jobs/+/result", false},
		{"factory-a", "aegis/factory-a/jobs//result", false},
		{"factory-a", "other/factory-a/factory_state", false},
		{"factory-a", "", false},
		{"worker", "aegis/factory-a/jobs/run-1", true},
		{"worker", "aegis/worker/factory_state", false},
		{"worker", "aegis/factory-a/factory_state", false},
		{"worker", "aegis/factory-a/jobs/run-1/result", false},
		{"bridge", "aegis/bridge/factory_state", false},
		{"bridge", "aegis/factory-a/jobs/run-1", false},
		{"", "aegis//factory_state", true}, // unreachable: a certificate without a name cannot connect
	}
	for _, test := range tests {
		require.Equal(t, test.ok, policyFor(test.identity).mayPublish(test.topic), "%s to %s", test.identity, test.topic)
	}
}

func TestWhatIdentitiesMaySubscribe(t *testing.T) {
	tests := []struct {
		identity, filter string
		ok               bool
	}{
		{"factory-a", "aegis/factory-a/jobs/+", true},
		{"factory-a", "aegis/factory-a/jobs/run-1", true},
		{"factory-a", "aegis/factory-a/jobs/#", false},
		{"factory-a", "aegis/factory-a/#", false},
		{"factory-a", "aegis/factory-b/jobs/+", false},
		{"factory-a", "aegis/+/jobs/+", false},
		{"factory-a", "#", false},
		{"factory-a", "$share/g/aegis/factory-a/jobs/+", false},
		{"worker", "aegis/factory-a/jobs/+", false},
		{"worker", "#", false},
		{"bridge", "aegis/#", true},
		{"bridge", "aegis/+/factory_state", true},
		{"bridge", "#", false},
		{"bridge", "$SYS/#", false},
	}
	for _, test := range tests {
		require.Equal(t, test.ok, policyFor(test.identity).maySubscribe(test.filter), "%s to %s", test.identity, test.filter)
	}
}

// matches is the plain definition of a filter matching a topic.
func matches(filter, topic []string) bool {
	switch {
	case len(filter) == 0:
		return len(topic) == 0
	case filter[0] == "#":
		return true
	case len(topic) == 0:
		return false
	case filter[0] != "+" && filter[0] != topic[0]:
		return false
	}
	return matches(filter[1:], topic[1:])
}

func TestACoveredFilterMatchesNothingThatThePatternDoesNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom([]string{"aegis", "factory-a", "jobs", "x"})
		wild := rapid.SampledFrom([]string{"aegis", "factory-a", "jobs", "x", "+"})
		pattern := rapid.SliceOfN(wild, 1, 4).Draw(t, "pattern")
		filter := rapid.SliceOfN(wild, 1, 4).Draw(t, "filter")
		if rapid.Bool().Draw(t, "open pattern") {
			pattern = append(pattern, "#")
		}
		if rapid.Bool().Draw(t, "open filter") {
			filter = append(filter, "#")
		}
		topic := rapid.SliceOfN(level, 1, 5).Draw(t, "topic")
		if covers(strings.Join(pattern, "/"), strings.Join(filter, "/")) && matches(filter, topic) && !matches(pattern, topic) {
			t.Fatalf("%v covers %v, but not %v", pattern, filter, topic)
		}
	})
}
