package natstest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memberVariable has the options of the server that the test binary runs.
const memberVariable = "PINWHEEL_TEST_NATS_MEMBER"

// nowhere is the address that servers announce to each other. With their true addresses they would find routes around
// the links.
const nowhere = "127.0.0.1:1"

// patience is how long a cluster may take for an operation on a busy machine.
const patience = 60 * time.Second

// member has the options of one server of a cluster.
type member struct {
	Name, Dir, Log    string // Log is for a server without a cluster; Dir may be a directory that cannot be written
	Port, ClusterPort int
	Monitor           int // monitoring port of a server without a cluster
	Routes            []string
	SyncAlways        bool
	MaxFile           uint64 // maximum size of a file in bytes; 0: no limit
}

// BeServer makes the test binary a NATS server if it was started as one. Then it never returns. TestMain of a package
// that uses StartCluster or StartAlone calls it first.
func BeServer() {
	text := os.Getenv(memberVariable)
	if text == "" {
		return
	}
	var m member
	err := json.Unmarshal([]byte(text), &m)
	if err == nil {
		err = m.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs until stdin ends: when the parent ends or closes it.
func (m member) serve() error {
	o := &server.Options{
		ServerName: m.Name, Host: "127.0.0.1", Port: m.Port, JetStream: true, StoreDir: m.Dir, SyncAlways: m.SyncAlways,
		NoSigs: true, LogFile: m.Dir + ".log", Logtime: true,
		DisableJetStreamBanner: true, LameDuckDuration: time.Second, LameDuckGracePeriod: 500 * time.Millisecond,
	}
	if m.ClusterPort != 0 {
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: m.ClusterPort, Advertise: nowhere,
			NoAdvertise: true}
	} else {
		o.LogFile, o.JetStreamMaxStore = m.Log, 100<<30 // so the free space of the disk is not checked
		o.HTTPHost, o.HTTPPort = "127.0.0.1", m.Monitor
	}
	if m.MaxFile > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: m.MaxFile, Max: m.MaxFile}); err != nil {
			return err
		}
	}
	for _, r := range m.Routes {
		u, err := url.Parse(r)
		if err != nil {
			return err
		}
		o.Routes = append(o.Routes, u)
	}
	srv, err := server.NewServer(o)
	if err != nil {
		return err
	}
	srv.ConfigureLogger()
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		return fmt.Errorf("server %s is not ready", m.Name)
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	srv.LameDuckShutdown() // hands over its leader roles
	srv.WaitForShutdown()
	return nil
}

// Cluster is a set of NATS servers with JetStream. Each runs in its own process, and each route between two of them is
// a link that can be cut.
type Cluster struct {
	t       testing.TB
	members []member
	cmds    []*exec.Cmd
	stdins  []func() error
	links   map[[2]int]*link // the link that i uses to reach j
}

// StartCluster starts n servers, and waits until they have a leader. They end with the test.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, links: map[[2]int]*link{}, cmds: make([]*exec.Cmd, n), stdins: make([]func() error, n)}
	dir := StoreDir(t)
	t.Cleanup(c.tell)
	for i := range n {
		c.members = append(c.members, member{Name: fmt.Sprintf("n%d", i), Dir: filepath.Join(dir, fmt.Sprint(i)),
			Port: FreePort(t), ClusterPort: FreePort(t)})
	}
	for i := range n {
		for j := range n {
			if i != j {
				l := openLink(t, c.members[j].ClusterPort)
				c.links[[2]int{i, j}] = l
				c.members[i].Routes = append(c.members[i].Routes, "nats://"+l.listener.Addr().String())
			}
		}
	}
	var ready []func()
	for i := range n {
		ready = append(ready, c.start(i))
	}
	for _, wait := range ready {
		wait()
	}
	c.Await()
	return c
}

// tell prints the last errors of the servers if the test failed.
func (c *Cluster) tell() {
	if !c.t.Failed() {
		return
	}
	for _, m := range c.members {
		text, _ := os.ReadFile(m.Dir + ".log")
		var lines []string
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "[WRN]") || strings.Contains(line, "[ERR]") || strings.Contains(line, "[FTL]") {
				lines = append(lines, line)
			}
		}
		c.t.Logf("the last of what server %s complained of:\n%s", m.Name, strings.Join(lines[max(0, len(lines)-30):], ""))
	}
}

// FreePort returns a free port that no outgoing connection gets. Until the test ends no other test gets it, in this
// process or another: a server must have the same port after a restart.
func FreePort(t testing.TB) int {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "pinwheel-test-ports")
	require.NoError(t, os.MkdirAll(dir, 0o777))
	for range 1000 {
		port := 20_000 + rand.IntN(10_000)
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o666)
		require.NoError(t, err)
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				_ = l.Close()
				t.Cleanup(func() { _ = lock.Close() })
				return port
			}
		}
		_ = lock.Close()
	}
	t.Fatal("no port is free")
	return 0
}

// Start starts server i, and returns when it accepts connections.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	c.start(i)()
}

func (c *Cluster) start(i int) (wait func()) {
	c.t.Helper()
	cmd, stop, wait := c.members[i].start(c.t)
	c.cmds[i], c.stdins[i] = cmd, stop
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails when the process has ended
		_ = cmd.Wait()
	})
	return wait
}

// start starts the process of a server. It ends when stop is called, or with its parent. wait returns when the server
// accepts connections.
func (m member) start(t testing.TB) (cmd *exec.Cmd, stop func() error, wait func()) {
	t.Helper()
	text, err := json.Marshal(m)
	require.NoError(t, err)
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), memberVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, in.Close, func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
}

// Kill ends server i like a power failure, except that the operating system keeps the data that was written to files.
func (c *Cluster) Kill(i int) {
	_ = c.cmds[i].Process.Kill()
	_ = c.cmds[i].Wait()
}

// Stop ends server i like an operator does.
func (c *Cluster) Stop(i int) {
	_ = c.stdins[i]()
	_ = c.cmds[i].Wait()
}

// Cut cuts every link of server i. Clients still reach the server.
func (c *Cluster) Cut(i int) { c.each(i, (*link).cut) }

// Heal restores the links.
func (c *Cluster) Heal(i int) { c.each(i, (*link).heal) }

func (c *Cluster) each(i int, do func(*link)) {
	for pair, l := range c.links {
		if pair[0] == i || pair[1] == i {
			do(l)
		}
	}
}

// URL is the address of server i for clients.
func (c *Cluster) URL(i int) string { return fmt.Sprintf("nats://127.0.0.1:%d", c.members[i].Port) }

// URLs returns the URLs of all servers, beginning with server first.
func (c *Cluster) URLs(first int) string {
	list := make([]string, len(c.members))
	for i := range list {
		list[i] = c.URL((first + i) % len(list))
	}
	return strings.Join(list, ",")
}

// Connect opens a connection that starts at server first and finds the others. It is closed when the test ends.
func (c *Cluster) Connect(first int) *nats.Conn {
	c.t.Helper()
	nc, err := Dial(c.URLs(first), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.DontRandomize())
	require.NoError(c.t, err)
	c.t.Cleanup(nc.Close)
	return nc
}

// Await waits until JetStream answers at every member, and a stream with a copy on each of them can be created.
func (c *Cluster) Await() {
	c.t.Helper()
	for i := range c.members {
		nc, err := Dial(c.URL(i), nats.MaxReconnects(-1))
		require.NoError(c.t, err)
		js, err := jetstream.New(nc)
		require.NoError(c.t, err)
		require.Eventually(c.t, func() bool { _, err := js.AccountInfo(c.t.Context()); return err == nil }, patience,
			20*time.Millisecond)
		if i == 0 {
			c.place(js)
		}
		nc.Close()
	}
}

// place waits until the leader knows enough servers for a stream with a copy on each.
func (c *Cluster) place(js jetstream.JetStream) {
	c.t.Helper()
	probe := jetstream.StreamConfig{Name: "probe", Storage: jetstream.MemoryStorage, Replicas: len(c.members)}
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		_, err := js.CreateOrUpdateStream(c.t.Context(), probe)
		require.NoError(t, err)
	}, patience, 50*time.Millisecond)
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		if err := js.DeleteStream(c.t.Context(), probe.Name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			require.NoError(t, err)
		}
	}, patience, 50*time.Millisecond)
}

// Leader returns the server that leads a stream, and whether all replicas are current.
func (c *Cluster) Leader(js jetstream.JetStream, stream string) (leader int, current bool) {
	s, err := js.Stream(c.t.Context(), stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return -1, false
	}
	info := s.CachedInfo().Cluster
	leader, current = -1, len(info.Replicas) > 0
	for i, m := range c.members {
		if m.Name == info.Leader {
			leader = i
		}
	}
	for _, r := range info.Replicas {
		current = current && r.Current && !r.Offline
	}
	return leader, current
}
