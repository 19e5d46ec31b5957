package artifact_test

import (
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

var draw = flag.Bool("draw", false, "draw the diagram of docs/artifacts.md anew")

var diagram = regexp.MustCompile("(?s)```mermaid\n.*?```")

// TestTheDocumentationDrawsTheTable holds the diagram against the table; -draw
// draws it anew.
func TestTheDocumentationDrawsTheTable(t *testing.T) {
	const file = "../../docs/artifacts.md"
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	want := "```mermaid\n" + artifact.Diagram() + "```"
	if *draw {
		require.NoError(t, os.WriteFile(file, diagram.ReplaceAllLiteral(body, []byte(want)), 0o600))
		return
	}
	require.Equal(t, want, string(diagram.Find(body)))
}
