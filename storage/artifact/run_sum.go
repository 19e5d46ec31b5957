package artifact

import (
	"cmp"
	"slices"
	"strings"

	"millrace/domain/artifact"
)

// SumRuns sums up all that is known of runs, by their ids, whose order is that in
// which they were begun (UUIDv7).
func SumRuns(runs []Execution) (artifact.RunsMark, error) {
	lines := make([]string, 0, len(runs))
	for _, run := range byID(runs) {
		body, err := artifact.Canonical(run.Run)
		if err != nil {
			return artifact.RunsMark{}, err
		}
		lines = append(lines, run.RunID+" "+artifact.HashOf(body)+"\n")
	}
	return artifact.RunsMark{Count: len(runs), Hash: artifact.HashOf([]byte(strings.Join(lines, "")))}, nil
}

func byID(runs []Execution) []Execution {
	return slices.SortedFunc(slices.Values(runs), func(a, b Execution) int { return cmp.Compare(a.RunID, b.RunID) })
}
