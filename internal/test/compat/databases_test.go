package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

// TestDatabases runs clients of databases and of mail, as their authors ship them, against the real servers, through
// the guard's list of what is allowed.
func TestDatabases(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	w := f.deploy(t, "databases.js")
	dir := serverDir(t)
	testcert.Write(t, dir, "db.test", 1)
	own(t, dir)
	authority, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
	require.NoError(t, err)
	for name, test := range map[string]struct {
		start func(*testing.T, string) map[string]any
		want  string
	}{
		"pg": {startPostgres, `{"texts":["äö","two"],"at":"1970-01-01T00:00:00.000Z","n":100000,"same":true,"failed":"42703",
			"sum":200010000,"many":5000,"twice":[2,4,6,8,10,12,14,16],"secure":{"ssl":true,"version":"TLSv1.3"},"wrong":"28P01"}`},
		"mysql": {startMariaDB, `{"rows":[{"text":"äö","n":1.5},{"text":"two","n":2}],"failed":"ER_BAD_FIELD_ERROR","many":5000,
			"secure":"TLSv1.3","wrong":"ER_ACCESS_DENIED_ERROR"}`},
		"redis": {startRedis, `{"counts":[1,2,"äö"],"channel":"news","text":"hello","same":true,"name":"äö"}`},
		"mail":  {startMail, `{"accepted":["bob@example.com"],"response":"250"}`},
	} {
		t.Run(name, func(t *testing.T) {
			payload := test.start(t, dir)
			payload["name"], payload["tlsCA"] = name, string(authority)
			var got any
			w.task(t, payload, &got)
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, test.want, string(text))
		})
	}
}

// serverDir makes a directory that servers can read, whoever they run as.
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pinwheel-servers-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// tool finds a program of a Debian package. Where packages are required, a missing one is a failure.
func tool(t *testing.T, name, debian string, more ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	for _, pattern := range more {
		if found, _ := filepath.Glob(pattern); len(found) > 0 && err != nil {
			path, err = found[len(found)-1], nil
		}
	}
	if err == nil {
		return path
	}
	fmt.Fprintf(os.Stderr, "NOT TESTED: %s: %s is not installed: apt-get install %s\n", t.Name(), name, debian)
	if os.Getenv(needNPM) == "required" {
		t.Fatalf("%s is not installed: apt-get install %s", name, debian)
	}
	t.Skipf("NOT TESTED: %s is not installed: apt-get install %s", name, debian)
	return ""
}

// unprivileged is the user nobody, if the test runs as root: PostgreSQL refuses to.
func unprivileged(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	require.NoError(t, err)
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	require.NoError(t, err)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// own gives a directory to the user of the servers.
func own(t *testing.T, dir string) {
	t.Helper()
	as := unprivileged(t)
	if as == nil {
		return
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, int(as.Credential.Uid), int(as.Credential.Gid))
	}))
}

// output is what a server has written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// serve starts a server and waits until it listens.
func serve(t *testing.T, dir string, port int, name string, args ...string) *output {
	t.Helper()
	out := &output{}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.WaitDelay = dir, out, out, unprivileged(t), time.Minute
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "PYTHONUNBUFFERED=1") // what a server in Python prints is there when it is killed
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { // Cleanup waits for it
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(out.String())
		}
	})
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		return c.Close() == nil
	}, 5*time.Minute, 20*time.Millisecond)
	select {
	case <-ended:
		require.Fail(t, "the server has ended", out.String())
	default:
	}
	return out
}

// do runs a program to its end.
func do(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.SysProcAttr = dir, unprivileged(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().(*net.TCPAddr).Port
}

func startPostgres(t *testing.T, dir string) map[string]any {
	const programs = "/usr/lib/postgresql/*/bin/"
	initdb := tool(t, "initdb", "postgresql", programs+"initdb")
	postgres := tool(t, "postgres", "postgresql", programs+"postgres")
	password, data, port := filepath.Join(dir, "password"), filepath.Join(dir, "postgres"), freePort(t)
	require.NoError(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	own(t, dir)
	do(t, dir, initdb, "-D", data, "-U", "ada", "--pwfile", password, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync")
	serve(t, dir, port, postgres, "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", dir, "-c",
		"fsync=off", "-c", "ssl=on",
		"-c", "ssl_cert_file="+filepath.Join(dir, "cert.pem"), "-c", "ssl_key_file="+filepath.Join(dir, "key.pem"))
	return map[string]any{"port": port}
}

func startMariaDB(t *testing.T, dir string) map[string]any {
	install := tool(t, "mariadb-install-db", "mariadb-server")
	mariadbd := tool(t, "mariadbd", "mariadb-server", "/usr/sbin/mariadbd")
	data, begin, port := filepath.Join(dir, "mariadb"), filepath.Join(dir, "begin.sql"), freePort(t)
	require.NoError(t, os.WriteFile(begin, []byte("create database if not exists test;\ncreate user ada@'%' identified by 'secret';\n"+
		"grant all on test.* to ada@'%';\n"), 0o644))
	require.NoError(t, os.Mkdir(data, 0o700))
	own(t, dir)
	do(t, dir, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	serve(t, dir, port, mariadbd, "--no-defaults", "--datadir="+data, "--port="+strconv.Itoa(port),
		"--bind-address=127.0.0.1",
		"--socket="+filepath.Join(dir, "mariadb.sock"), "--pid-file="+filepath.Join(dir, "mariadb.pid"), "--init-file="+begin,
		"--ssl-cert="+filepath.Join(dir, "cert.pem"), "--ssl-key="+filepath.Join(dir, "key.pem"), "--skip-name-resolve")
	return map[string]any{"port": port}
}

func startRedis(t *testing.T, dir string) map[string]any {
	port, secure := freePort(t), freePort(t)
	serve(t, dir, port, tool(t, "redis-server", "redis-server"), "--port", strconv.Itoa(port), "--bind",
		"127.0.0.1", "--save", "",
		"--requirepass", "secret", "--dir", dir, "--tls-port", strconv.Itoa(secure), "--tls-cert-file",
		filepath.Join(dir, "cert.pem"),
		"--tls-key-file", filepath.Join(dir, "key.pem"), "--tls-ca-cert-file", filepath.Join(dir, "cert.pem"),
		"--tls-auth-clients", "no")
	return map[string]any{"port": port, "tlsPort": secure}
}

func startMail(t *testing.T, dir string) map[string]any {
	port := freePort(t)
	var out *output
	t.Cleanup(func() { // when the server has ended
		if !t.Failed() {
			require.Contains(t, out.String(), "From: ada@example.com", "the server has the message")
		}
	})
	out = serve(t, dir, port, tool(t, "aiosmtpd", "python3-aiosmtpd"), "-n", "-l", fmt.Sprintf("127.0.0.1:%d", port),
		"-c", "aiosmtpd.handlers.Debugging", "stdout")
	return map[string]any{"port": port}
}
