package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutAnEndpointThereIsNoPublisher(t *testing.T) {
	require.NoError(t, IoT{CertFile: "left over"}.Validate())
	_, ok := IoT{}.Publisher()
	require.False(t, ok)
}

func TestABrokerNeedsItsFiles(t *testing.T) {
	err := IoT{Endpoint: "bro ker", ClientID: strings.Repeat("x", 128)}.Validate()
	for _, variable := range []string{
		"MILLRACE_IOT_CA_FILE", "MILLRACE_IOT_CERT_FILE", "MILLRACE_IOT_KEY_FILE", "MILLRACE_IOT_ENDPOINT: endpoint", "MILLRACE_IOT_CLIENT_ID",
	} {
		require.ErrorContains(t, err, variable)
	}
}

func TestWorkersHaveClientIDsOfTheirOwn(t *testing.T) {
	i := IoT{Endpoint: "broker.example.com", Port: 8883, CAFile: "ca", CertFile: "cert", KeyFile: "key", ClientID: "millrace-worker"}
	require.NoError(t, i.Validate())
	first, ok := i.Publisher()
	require.True(t, ok)
	second, _ := i.Publisher()
	require.NotEqual(t, first.Config.ClientID, second.Config.ClientID)
	require.Regexp(t, `^millrace-worker-[0-9a-f]{8}$`, first.Config.ClientID)
	require.Equal(t, 8883, first.Config.Port)
}
