package factory

// Bounds of what is kept of one infra_state message; the rest is cut and
// counted. MaxInfraBytes bounds the block in LATEST, as JSON, and leaves room for
// the rest of it below MaxLatestBytes.
const (
	MaxNodes      = 50
	MaxWorkloads  = 200
	MaxDevices    = 20
	MaxInfraBytes = 10 * 1024
)

// MaxLatestBytes is the greatest size of a stored state, as JSON.
const MaxLatestBytes = 16 * 1024

// healthy tells that leaving the node out changes no judgement.
func (n Node) healthy() bool {
	full := n.DiskUsagePercent != nil && n.DiskUsagePercent.AtLeast(storageFrom)
	return n.Ready && !n.cutOff() && !full
}

func (w Workload) healthy() bool { return w.Ready }

// atMost is the list cut to limit elements and how many were cut.
func atMost[T any](list []T, limit int, healthy func(T) bool) (kept []T, cut int) {
	return shed(list, len(list)-limit, func(T) int { return 1 }, healthy)
}

// shed removes elements that cost excess together from the end of a list,
// healthy ones before those in trouble. It leaves the list itself as it is.
func shed[T any](list []T, excess int, cost func(T) int, healthy func(T) bool) (kept []T, cut int) {
	if excess <= 0 {
		return list, 0
	}
	drop := make([]bool, len(list))
	for _, well := range []bool{true, false} {
		for i := len(list) - 1; i >= 0 && excess > 0; i-- {
			if healthy(list[i]) == well {
				drop[i] = true
				excess -= cost(list[i])
				cut++
			}
		}
	}
	kept = make([]T, 0, len(list)-cut)
	for i, element := range list {
		if !drop[i] {
			kept = append(kept, element)
		}
	}
	return kept, cut
}

// fit is the block cut to MaxInfraBytes: first devices that no rule knows, then
// workloads, then nodes. Counts and required devices always stay.
func (s InfraState) fit() InfraState {
	steps := []func(*InfraState, *Cut, int){(*InfraState).shedDevices, (*InfraState).shedWorkloads, (*InfraState).shedNodes}
	for _, step := range steps {
		excess := jsonSize(s) - MaxInfraBytes
		if excess <= 0 {
			return s
		}
		cut := Cut{}
		if s.Cut != nil {
			cut = *s.Cut
		}
		step(&s, &cut, excess+maxCutGrowth)
		s.Cut = &cut
	}
	return s
}

// maxCutGrowth is by how much the counts of what was cut can lengthen the block.
const maxCutGrowth = 80

func (s *InfraState) shedDevices(cut *Cut, _ int) {
	kept := make(map[string]Device, len(RequiredDevices))
	for _, name := range RequiredDevices {
		if device, ok := s.Devices[name]; ok {
			kept[name] = device
		}
	}
	cut.Devices += len(s.Devices) - len(kept)
	s.Devices = kept
}

func (s *InfraState) shedWorkloads(cut *Cut, excess int) {
	kept, dropped := shed(s.Workloads, excess, listCost[Workload], Workload.healthy)
	s.Workloads = kept
	cut.Workloads += dropped
}

func (s *InfraState) shedNodes(cut *Cut, excess int) {
	kept, dropped := shed(s.Nodes, excess, listCost[Node], Node.healthy)
	s.Nodes = kept
	cut.Nodes += dropped
}

// listCost is what an element and its comma take in JSON.
func listCost[T any](element T) int { return jsonSize(element) + 1 }

// jsonSize is the length of a document as EncodeJSON writes it; what can't be
// written has none.
func jsonSize(document any) int {
	body, err := EncodeJSON(document)
	if err != nil {
		return 0
	}
	return len(body)
}
