package stack

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func numbers(p *Ports) []int {
	var all []int
	for _, q := range p.all() {
		all = append(all, *q.number)
	}
	return all
}

func TestZerosBecomeDifferentFreePorts(t *testing.T) {
	var p Ports
	require.NoError(t, p.Resolve())
	seen := make(map[int]bool)
	for _, n := range numbers(&p) {
		require.GreaterOrEqual(t, n, firstPort)
		require.Less(t, n, lastPort)
		require.False(t, seen[n], "port %d twice", n)
		require.NoError(t, checkFree(n))
		seen[n] = true
	}
}

func TestAllPortsInUseAreNamedTogether(t *testing.T) {
	var p Ports
	for _, number := range []*int{&p.S3, &p.IoT} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		*number = listener.Addr().(*net.TCPAddr).Port
	}
	err := p.Resolve()
	require.ErrorContains(t, err, "port "+strconv.Itoa(p.S3)+" (S3) is in use: stop what uses it or choose another with --s3-port or MILLRACE_LOCAL_S3_PORT")
	require.ErrorContains(t, err, "port "+strconv.Itoa(p.IoT)+" (message broker) is in use")
	require.ErrorContains(t, err, "MILLRACE_LOCAL_IOT_PORT")
}

func TestOnePortForTwoPartsIsRefused(t *testing.T) {
	p := Ports{S3: 20_001, SQS: 20_001}
	require.ErrorContains(t, p.Resolve(), "port 20001 is given to both S3 and SQS")
}

func TestImpossiblePortIsRefused(t *testing.T) {
	p := Ports{S3: 70_000}
	require.ErrorContains(t, p.Resolve(), "port 70000 (S3) cannot be used")
}
