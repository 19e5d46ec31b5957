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
	require.Equal(t, "--- v1/run.sh\n+++ v2/run.sh\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", text)
	text, err = artifact.Diff("a", "b", []byte("x"), []byte("x\n"))
	require.NoError(t, err)
	require.Contains(t, text, "-x\n\\ No newline at end of file\n+x\n")
	for want, sides := range map[string][2][]byte{
		"":             {[]byte("same"), []byte("same")},
		"no text":      {[]byte("a"), {0, 1}},
		"too long":     {[]byte("a"), bytes.Repeat([]byte("b"), artifact.MaxDiff+1)},
		"are too long": {[]byte("a"), bytes.Repeat([]byte("b\n"), artifact.MaxDiffLines+1)},
	} {
		text, err := artifact.Diff("a", "b", sides[0], sides[1])
		require.NoError(t, err)
		require.Contains(t, text, want)
	}
}
