package observability

import (
	"cmp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// Node is a signal in the tree of its trace. Depth is 0 for roots.
type Node struct {
	Signal
	Depth int `json:"depth"`
	// Orphan tells that the signal names a parent that is not in this answer.
	Orphan bool `json:"orphan,omitempty"`
}

// Totals are the sums of a trace's signals.
type Totals struct {
	Signals int64 `json:"signals"`
	Errors  int64 `json:"errors"`
	Tokens
	TotalTokens int64         `json:"total_tokens"`
	CostUSD     exact.Decimal `json:"cost_usd"`
	StartedAt   time.Time     `json:"started_at"`
	EndedAt     time.Time     `json:"ended_at"`
	// DurationMS is the time from the first start to the last end.
	DurationMS exact.Decimal `json:"duration_ms"`
}

// Total sums signals up.
func Total(signals []Signal) Totals {
	var t Totals
	for i, s := range signals {
		t.Signals++
		if s.Status == StatusError {
			t.Errors++
		}
		t.Input += s.Input
		t.CachedInput += s.CachedInput
		t.Output += s.Output
		t.Reasoning += s.Reasoning
		t.TotalTokens += s.TotalTokens
		if s.CostUSD != nil {
			t.CostUSD = t.CostUSD.Add(*s.CostUSD)
		}
		end := s.end()
		if i == 0 || s.Timestamp.Before(t.StartedAt) {
			t.StartedAt = s.Timestamp
		}
		if end.After(t.EndedAt) {
			t.EndedAt = end
		}
	}
	t.DurationMS = exact.FromInt(t.EndedAt.Sub(t.StartedAt).Nanoseconds()).Mul(perMillion)
	return t
}

// end is when what the signal tells of ended.
func (s Signal) end() time.Time {
	if s.DurationMS == nil {
		return s.Timestamp
	}
	nanoseconds, _ := s.DurationMS.Mul(exact.FromInt(int64(time.Millisecond))).Int64()
	return s.Timestamp.Add(time.Duration(nanoseconds))
}

// Tree orders the signals of a trace: each is followed by its children, earlier
// ones first. Signals whose parent is missing are roots, and so is one of each
// circle, so that every signal is in the tree once.
func Tree(signals []Signal) []Node {
	signals = slices.Clone(signals)
	slices.SortFunc(signals, func(a, b Signal) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.SignalID, b.SignalID), cmp.Compare(a.AppID, b.AppID))
	})
	t := tree{signals: signals, placed: make([]bool, len(signals)), children: make([][]int, len(signals)), parents: make([]int, len(signals))}
	t.link()
	for i := range signals {
		if t.parents[i] < 0 {
			t.place(i)
		}
	}
	for i := range signals {
		t.place(i) // what is left are circles
	}
	return t.nodes
}

type tree struct {
	signals  []Signal
	parents  []int
	children [][]int
	placed   []bool
	nodes    []Node
}

// link finds each signal's parent, in the same application before others.
func (t *tree) link() {
	type name struct{ app, id string }
	byName, byID := map[name]int{}, map[string]int{}
	for i, s := range slices.Backward(t.signals) {
		byName[name{s.AppID, s.SignalID}], byID[s.SignalID] = i, i
	}
	for i, s := range t.signals {
		parent, found := byName[name{s.AppID, s.ParentSignalID}]
		if !found {
			parent, found = byID[s.ParentSignalID]
		}
		if !found || s.ParentSignalID == "" || parent == i {
			t.parents[i] = -1
			continue
		}
		t.parents[i] = parent
		t.children[parent] = append(t.children[parent], i)
	}
}

// place adds a signal and all below it, without recursion: a trace may be deep.
func (t *tree) place(root int) {
	type step struct{ signal, depth int }
	for stack := []step{{root, 0}}; len(stack) > 0; {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t.placed[next.signal] {
			continue
		}
		t.placed[next.signal] = true
		s := t.signals[next.signal]
		t.nodes = append(t.nodes, Node{Signal: s, Depth: next.depth, Orphan: s.ParentSignalID != "" && t.parents[next.signal] < 0})
		for _, child := range slices.Backward(t.children[next.signal]) {
			stack = append(stack, step{child, next.depth + 1})
		}
	}
}
