package artifact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

func TestADiffShowsWhatHidesItself(t *testing.T) {
	const warning = "warning: the files have control or format characters"
	text, err := artifact.Diff("v1", "v2", []byte("echo a\n"), []byte("echo a \u202e# b\u2066\nrm -rf x\r: y\n\x1b[2Kz\n"))
	require.NoError(t, err)
	require.Contains(t, text, warning)
	require.Contains(t, text, `+echo a \u202e# b\u2066`+"\n")
	require.Contains(t, text, `+rm -rf x\u000d: y`+"\n")
	require.Contains(t, text, `+\u001b[2Kz`+"\n")
	require.NotContains(t, text, "\u202e")

	var lines string
	for range 20 {
		lines += "a\n"
	}
	text, err = artifact.Diff("v1", "v2", []byte("\u202e\n"+lines), []byte("\u202e\n"+lines+"b\n"))
	require.NoError(t, err)
	require.Contains(t, text, warning, "what has not changed may hide something as well")

	text, err = artifact.Diff("v1", "v2", []byte("a\tö\n"), []byte("b\tö\n"))
	require.NoError(t, err)
	require.NotContains(t, text, warning)
}
