package artifact_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

// allowed is the table of the protocol, written a second time.
var allowed = map[artifact.State]string{
	"":                    "draft in_review",
	"draft":               "in_review withdrawn expired",
	"in_review":           "approved rejected withdrawn expired superseded",
	"approved":            "executing withdrawn expired superseded",
	"executing":           "executed failed",
	"executed":            "compensating archived",
	"failed":              "compensating archived",
	"compensating":        "compensated compensation_failed",
	"compensated":         "archived",
	"compensation_failed": "compensating archived",
	"rejected":            "archived",
	"withdrawn":           "archived",
	"expired":             "archived",
	"superseded":          "archived",
	"archived":            "",
}

func TestEveryPairOfStatesIsAllowedOrRefused(t *testing.T) {
	states := append(artifact.States(), artifact.None)
	require.Len(t, states, len(allowed))
	for _, from := range states {
		for _, to := range states {
			err := artifact.Transit(from, to)
			if slices.Contains(strings.Fields(allowed[from]), string(to)) {
				require.NoError(t, err, "%s to %s", from, to)
				continue
			}
			var refused *artifact.TransitionError
			require.ErrorAs(t, err, &refused, "%s to %s", from, to)
			require.Equal(t, artifact.TransitionError{From: from, To: to}, *refused)
			require.ErrorContains(t, err, string(from)+" to "+string(to))
		}
	}
	require.Error(t, artifact.Transit("made up", artifact.Draft))
	require.Error(t, artifact.Transit(artifact.Draft, "made up"))
}

func TestEveryStateCanBeReachedAndLeadsToTheArchive(t *testing.T) {
	reached := map[artifact.State]bool{}
	var walk func(artifact.State)
	walk = func(s artifact.State) {
		for _, next := range s.Next() {
			if !reached[next] {
				reached[next] = true
				walk(next)
			}
		}
	}
	walk(artifact.None)
	for _, s := range artifact.States() {
		require.True(t, reached[s], s)
		require.True(t, s.Known())
	}
	require.False(t, artifact.State("x").Known())
	require.True(t, artifact.Rejected.Settled())
	require.True(t, artifact.Archived.Settled())
	require.False(t, artifact.Approved.Settled())
}

func TestTheDiagramHasEveryTransition(t *testing.T) {
	diagram := artifact.Diagram()
	for from, nexts := range allowed {
		for to := range strings.FieldsSeq(nexts) {
			if from == "" {
				from = "[*]"
			}
			require.Contains(t, diagram, "    "+string(from)+" --> "+to+"\n")
		}
	}
	require.Contains(t, diagram, "archived --> [*]")
}
