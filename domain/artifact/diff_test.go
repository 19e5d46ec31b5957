package artifact_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

func TestReviewersSeeWhatChanged(t *testing.T) {
	text, err := artifact.Diff("v1/run.sh", "v2/run.sh", []byte("a\nb\nc\n"), []byte("a\nB\nc\n"))
	require.NoError(t, err)
	require.Contains(t, text, "--- v1/run.sh\n+++ v2/run.sh\n")
	require.Contains(t, text, "-b\n+B\n")
	for want, sides := range map[string][2][]byte{
		"":         {[]byte("same"), []byte("same")},
		"no text":  {[]byte("a"), {0, 1}},
		"too long": {[]byte("a"), bytes.Repeat([]byte("b\n"), artifact.MaxDiff)},
	} {
		text, err := artifact.Diff("a", "b", sides[0], sides[1])
		require.NoError(t, err)
		require.Contains(t, text, want)
	}
}
