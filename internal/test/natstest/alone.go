package natstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Alone is a NATS server with JetStream in its own process.
type Alone struct {
	t   testing.TB
	m   member
	cmd *exec.Cmd
	end func() error
}

// StartAlone starts a server with its data in dir. Each of its files may have at most maxFile bytes; 0: no limit. It
// ends with the test.
func StartAlone(t testing.TB, dir string, maxFile uint64) *Alone {
	t.Helper()
	log := filepath.Join(t.TempDir(), "server.log")
	a := &Alone{t: t, m: member{Name: "alone", Dir: dir, Log: log, Port: FreePort(t), Monitor: FreePort(t)}}
	t.Cleanup(func() {
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("the last of what the server wrote:\n%s", text[max(0, len(text)-6000):])
		}
	})
	t.Cleanup(func() { a.Kill() })
	a.Start(maxFile)
	return a
}

// Start starts it again, at the same port and with the same data. It returns when the server accepts connections.
func (a *Alone) Start(maxFile uint64) {
	a.t.Helper()
	a.m.MaxFile = maxFile
	cmd, end, wait := a.m.start(a.t)
	a.cmd, a.end = cmd, end
	wait()
}

// Kill kills the server.
func (a *Alone) Kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// Stop has the server end by itself.
func (a *Alone) Stop() {
	require.NoError(a.t, a.end())
	_ = a.cmd.Wait()
}

// URL is the address for clients.
func (a *Alone) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", a.m.Port) }

// Monitor is the URL of its monitoring port.
func (a *Alone) Monitor() string { return fmt.Sprintf("http://127.0.0.1:%d", a.m.Monitor) }
