package compat_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

// TestHTTPClients uses a worker by HTTP with the packages undici and ws on Node.js.
func TestHTTPClients(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	plain := fleettest.Start(t, func(c *config.Config) { c.HTTPAddr, c.HTTPPaths = "127.0.0.1:0", "npm" })
	plain.Deploy(t, filepath.Join(dir, "web.js"), "--owner", "npm")
	for _, name := range []string{"undici", "pipelining", "uploads", "gone", "ws", "frames"} {
		t.Run(name, func(t *testing.T) { node(t, dir, name, "http://"+plain.HTTP+"/web") })
	}
	certs := t.TempDir()
	testcert.Write(t, certs, "pinwheel.test", 1)
	cert, key := filepath.Join(certs, "cert.pem"), filepath.Join(certs, "key.pem")
	secure := fleettest.Start(t, func(c *config.Config) {
		c.HTTPAddr, c.HTTPPaths, c.HTTPCert, c.HTTPKey = "127.0.0.1:0", "npm", cert, key
	})
	secure.Deploy(t, filepath.Join(dir, "web.js"), "--owner", "npm")
	t.Run("http2", func(t *testing.T) { node(t, dir, "http2", "https://"+secure.HTTP+"/web", cert) })
}

// node runs a check of clients/http.mjs.
func node(t *testing.T, dir string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, "clients", "http.mjs")}, args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
