package natstest

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// setPasswords sets the variables that the configurations of deploy/nats read. They stay set until the process ends.
var setPasswords = sync.OnceValue(func() (err error) {
	for _, name := range []string{"FLEET", "BACKUP", "ACME", "BETA", "CALLOUT"} {
		err = errors.Join(err, os.Setenv(name+"_PASSWORD", strings.ToLower(name)+"-secret"))
	}
	return err
})

// StartConfigured starts a server with a configuration of deploy/nats, and returns its URL. Its ports are free ones.
// The password of each user is its name and "-secret". It ends with the test.
func StartConfigured(t testing.TB, file string) string {
	t.Helper()
	require.NoError(t, setPasswords())
	o, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	o.HTTPHost, o.HTTPPort = "127.0.0.1", -1
	return StartOptions(t, o)
}

// StartIn starts a server that has its files in dir, and takes messages up to maxPayload bytes. It returns its URL, and
// a function that stops it. It ends with the test.
func StartIn(t testing.TB, dir string, maxPayload int32) (url string, stop func()) {
	t.Helper()
	return serve(t, &server.Options{StoreDir: dir, MaxPayload: maxPayload})
}

// StartOptions starts a server with the options o, and returns its URL. Its port is a free one. It ends with the test.
func StartOptions(t testing.TB, o *server.Options) string {
	t.Helper()
	o.StoreDir = StoreDir(t)
	url, _ := serve(t, o)
	return url
}

func serve(t testing.TB, o *server.Options) (url string, stop func()) {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.JetStream = "127.0.0.1", -1, true, true, true
	o.AuthTimeout = patience.Seconds() // the default of 2 s is too short for clients on a busy machine
	srv, err := server.NewServer(o)
	require.NoError(t, err)
	srv.Start()
	stop = func() { srv.Shutdown(); srv.WaitForShutdown() }
	t.Cleanup(stop)
	require.True(t, srv.ReadyForConnections(time.Minute))
	return srv.ClientURL(), stop
}
