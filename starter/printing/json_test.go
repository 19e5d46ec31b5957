package printing_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/starter/printing"
)

func TestJSONIsIndentedAndLeavesMarksAlone(t *testing.T) {
	var out strings.Builder
	require.NoError(t, printing.JSON(&out, map[string]string{"a": "<&>"}))
	require.Equal(t, "{\n  \"a\": \"<&>\"\n}\n", out.String())
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestJSONTellsThatNothingWasWritten(t *testing.T) {
	require.ErrorContains(t, printing.JSON(closed{}, 1), "print: closed")
}
