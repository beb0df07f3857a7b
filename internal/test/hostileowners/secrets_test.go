package hostileowners

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"
)

// secretsWithoutEnd has acme store large secrets for workers that do not exist. Each process keeps all of them in
// memory.
func secretsWithoutEnd(t *testing.T, f *fleet) (harm string) {
	acme := f.as("acme")
	sealed, err := json.Marshal([]byte(strings.Repeat("x", 120_000)))
	require.NoError(t, err)
	stored, refused := 0, ""
	for i := range 60 {
		request := fmt.Sprintf(`{"worker":"none%d","name":"A","sealed":%s}`, i, sealed)
		m, err := acme.Request("pinwheel.owner.acme.secrets.set", []byte(request), patience)
		require.NoError(t, err)
		if refused = m.Header.Get(micro.ErrorHeader); refused == "" {
			stored++
			continue
		}
		require.Equal(t, "403", m.Header.Get(micro.ErrorCodeHeader), refused)
	}
	if stored > 8 {
		return fmt.Sprintf("%d secrets of 120 kB for workers that do not exist are stored", stored)
	}
	require.Contains(t, refused, "there is no worker acme/none59")
	return ""
}
