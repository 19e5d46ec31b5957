package simulator

import (
	"math/rand/v2"
	"slices"

	"millrace/domain/factory"
)

// States that the message contract has for nodes and workloads.
const (
	reachable   = "ok"
	notReady    = "not_ready"
	unreachable = "unreachable"

	running         = "Running"
	crashing        = "CrashLoopBackOff"
	nodeUnavailable = "NodeUnavailable"
)

var deviceNames = factory.RequiredDevices

// cluster is the state of the simulated cluster in one infra_state.
type cluster struct {
	nodes     []node
	workloads []workload
	// gone are the devices that don't answer.
	gone map[string]bool
}

// newCluster is a healthy cluster with freshly drawn loads.
func newCluster(p Profile, rng *rand.Rand) *cluster {
	c := &cluster{gone: map[string]bool{}}
	for _, n := range p.Nodes {
		load := func(base, jitter Centi) *Centi {
			value := Band{Base: base, Jitter: jitter}.percent(rng)
			return &value
		}
		c.nodes = append(c.nodes, node{
			NodeID:              n.ID,
			Role:                n.Role,
			Ready:               true,
			CPUUsagePercent:     load(n.Base.CPU, p.NodeJitter.CPU),
			MemoryUsagePercent:  load(n.Base.Memory, p.NodeJitter.Memory),
			DiskUsagePercent:    load(n.Base.Disk, p.NodeJitter.Disk),
			NetworkReachability: reachable,
		})
	}
	for _, w := range p.Workloads {
		c.workloads = append(c.workloads, workload{
			Namespace: w.Namespace, Name: w.Name, NodeID: w.Node, Status: running, Ready: true,
		})
	}
	return c
}

// takeDown makes a node not ready: nothing can be measured on it any more.
func (n *node) takeDown() {
	n.Ready = false
	n.NetworkReachability = notReady
	n.CPUUsagePercent, n.MemoryUsagePercent, n.DiskUsagePercent = nil, nil, nil
}

func (w *workload) fail(status string, restarts int) {
	w.Status, w.Ready, w.RestartCount = status, false, restarts
}

// lose takes nodes down together with the workloads on them.
func (c *cluster) lose(ids []string) {
	for i := range c.nodes {
		if slices.Contains(ids, c.nodes[i].NodeID) {
			c.nodes[i].takeDown()
		}
	}
	for i := range c.workloads {
		if slices.Contains(ids, c.workloads[i].NodeID) {
			c.workloads[i].fail(nodeUnavailable, c.workloads[i].RestartCount)
		}
	}
}

func (c *cluster) nodeSummary() nodeSummary {
	s := nodeSummary{Total: len(c.nodes)}
	for _, n := range c.nodes {
		if n.Ready {
			s.Ready++
		}
	}
	s.NotReady = s.Total - s.Ready
	return s
}

func (c *cluster) workloadSummary() workloadSummary {
	s := workloadSummary{Total: len(c.workloads)}
	for _, w := range c.workloads {
		if w.Ready && w.Status == running {
			s.Running++
		}
	}
	s.NotRunning = s.Total - s.Running
	return s
}

// effect is what an infra event does to a healthy cluster.
type effect func(c *cluster, rng *rand.Rand)

func lastDiskFull(low, high Centi) effect {
	return func(c *cluster, rng *rand.Rand) {
		value := between(rng, low, high)
		c.nodes[len(c.nodes)-1].DiskUsagePercent = &value
	}
}

func oneDeviceGone(names ...string) effect {
	return func(c *cluster, rng *rand.Rand) { c.gone[names[rng.IntN(len(names))]] = true }
}

func lastPodCrashing(low, high int) effect {
	return func(c *cluster, rng *rand.Rand) {
		c.workloads[len(c.workloads)-1].fail(crashing, low+rng.IntN(high-low+1))
	}
}

func allPodsCrashing(low, high int) effect {
	return func(c *cluster, rng *rand.Rand) {
		for i := range c.workloads {
			c.workloads[i].fail(crashing, low+rng.IntN(high-low+1))
		}
	}
}

func lastNodeDown(c *cluster, _ *rand.Rand) { c.nodes[len(c.nodes)-1].takeDown() }

func allNodesDown(c *cluster, _ *rand.Rand) {
	for i := range c.nodes {
		c.nodes[i].takeDown()
	}
	for i := range c.workloads {
		c.workloads[i].fail(nodeUnavailable, c.workloads[i].RestartCount)
	}
}

func networkUnreachable(c *cluster, _ *rand.Rand) {
	for i := range c.nodes {
		c.nodes[i].NetworkReachability = unreachable
	}
}
