package localhost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST.:80": true, "w--dev.localhost:8787": true, "127.0.0.1": true, "192.0.2.7:80": true,
		"[::1]:80": true, "[::1]": true, "::1": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "notlocalhost": false,
		"127.0.0.1.evil.example:80": false, "0x7f000001": false, "127.1": false,
	} {
		require.Equal(t, want, Is(host), host)
	}
}
