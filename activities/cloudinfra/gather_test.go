package cloudinfra

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"millrace/domain/cloudinfra"
)

func TestABlipOfOneCallIsLookedAtAgain(t *testing.T) {
	var mu sync.Mutex
	looks := map[string]int{}
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
	found, err := gather([]string{"well", "blip", "down", "denied"}, "x:Look", Collector{Now: func() time.Time { return noon }}, func(thing string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		looks[thing]++
		switch {
		case thing == "down", thing == "blip" && looks[thing] == 1:
			return "", errors.New("connection reset")
		case thing == "denied":
			return "", denied
		}
		return thing, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"well", "blip"}, found.Value)
	require.Equal(t, map[string]int{"well": 1, "blip": 2, "down": 2, "denied": 1}, looks, "what is final is asked once")
	require.Equal(t, []string{codeUnreachable, "AccessDeniedException"}, codesOf(found.Errors))
}

func codesOf(errs []cloudinfra.Error) []string {
	var codes []string
	for _, e := range errs {
		codes = append(codes, e.Code)
	}
	return codes
}
