package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	natstest.BeServer()
	parallel.AtOnce(parallel.Fleets)
	os.Exit(m.Run())
}

func fleetConfig() consumer.Config {
	c := consumer.DefaultConfig()
	c.Node, c.MaxBytes, c.DeadLetterBytes, c.Heartbeat = "test", 64<<20, 64<<20, 200*time.Millisecond
	return c
}

func config(nc *nats.Conn, c consumer.Config) doctor.Config {
	return doctor.Config{
		NC: nc, Subjects: c.Prefix, Resources: append(consumer.Assets(c, nc.MaxPayload()),
			deploy.Resources(deploy.Config{Replicas: c.Replicas, MaxBytes: 64 << 20, AssetsMaxBytes: 1 << 20})...),
		Replicas:  c.Replicas,
		Progress:  300 * time.Millisecond,
		Anonymous: func() (*nats.Conn, error) { return natstest.Dial(nc.ConnectedUrl()) },
	}
}

// broken starts a server with these options.
func broken(t *testing.T, o *server.Options, opts ...nats.Option) *nats.Conn {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.StoreDir = "127.0.0.1", -1, true, true, natstest.StoreDir(t)
	srv, err := server.NewServer(o)
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(patience))
	nc, err := natstest.Dial(srv.ClientURL(), opts...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// makeAssets creates all resources, as processes do.
func makeAssets(t *testing.T, nc *nats.Conn, c consumer.Config) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, c, nc.MaxPayload()))
	k := &resources.Reconciler{JS: js}
	for _, a := range deploy.Resources(deploy.Config{Replicas: c.Replicas, MaxBytes: 64 << 20, AssetsMaxBytes: 1 << 20}) {
		require.NoError(t, k.Reconcile(t.Context(), a))
	}
	return js
}

func said(t *testing.T, lines []doctor.Line, level doctor.Level, check, text string) {
	t.Helper()
	for _, l := range lines {
		if l.Level == level && l.Check == check && strings.Contains(l.Text, text) {
			return
		}
	}
	list := ""
	for _, l := range lines {
		list += fmt.Sprintf("%s %s: %s\n", l.Level, l.Check, l.Text)
	}
	t.Errorf("no line %s %s with %q in\n%s", level, check, text, list)
}

type acker struct{ settle func([]lifecycle.Settlement) }

func (*acker) Through(string, uint64) bool { return false }

func (*acker) Cancel([]*lifecycle.Delivery, bool) []*lifecycle.Delivery { return nil }

func (a *acker) Submit(batch []*lifecycle.Delivery) {
	for _, e := range batch {
		a.settle([]lifecycle.Settlement{{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack}}})
	}
}

// fleet runs a consumer until the test ends.
func fleet(t *testing.T, nc *nats.Conn, c consumer.Config) {
	t.Helper()
	d := &acker{}
	f, err := consumer.New(c, nc, d, zerolog.Nop(), nil)
	require.NoError(t, err)
	d.settle = f.Settle
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })
	require.Eventually(t, func() bool { return f.Ready() == nil }, patience, time.Millisecond)
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	nc := broken(t, &server.Options{JetStream: true, Username: "u", Password: "p"}, nats.UserInfo("u", "p"))
	c := fleetConfig()
	makeAssets(t, nc, c)
	fleet(t, nc, c)
	// the anchor exists already and is about to be moved: it is not an event
	for _, pin := range []string{c.Prefix.Anchor(), c.Prefix.ParkedAnchor()} {
		require.NoError(t, nc.Publish(pin, nil))
	}
	require.NoError(t, nc.Flush())
	lines := doctor.Examine(t.Context(), config(nc, c))
	for _, l := range lines {
		if l.Check != "processes" && l.Check != "strangers" { // there is no service in this test
			require.Equal(t, doctor.OK, l.Level, "%+v", l)
		}
		require.Equal(t, l.Level == doctor.OK, l.Do == "", "%+v", l)
	}
	said(t, lines, doctor.OK, "assets", fmt.Sprintf("%d of %[1]d streams", len(config(nc, c).Resources)))
	said(t, lines, doctor.OK, "durability", "one copy, written to the operating system before the publisher gets an ack, and to disk at a time that is not known here")
	said(t, lines, doctor.OK, "clock", "the server's clock and this machine's differ by ")
	said(t, lines, doctor.OK, "strangers", "a client without credentials is refused")
	said(t, lines, doctor.OK, "permissions", "user u of account $G")
	said(t, lines, doctor.Bad, "processes", "no process")
	require.Equal(t, doctor.Bad, doctor.Worst(lines))
}

func TestNoJetStream(t *testing.T) {
	t.Parallel()
	nc := broken(t, &server.Options{MaxPayload: 1000})
	lines := doctor.Examine(t.Context(), config(nc, fleetConfig()))
	said(t, lines, doctor.Bad, "jetstream", "no JetStream")
	said(t, lines, doctor.Warn, "payload", "1000 bytes")
	require.Equal(t, doctor.Bad, doctor.Worst(lines))
}

func TestNothingIsThere(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	lines := doctor.Examine(t.Context(), config(nc, fleetConfig()))
	said(t, lines, doctor.Bad, "assets", "nothing of a fleet is here")
}

func TestDriftIsTold(t *testing.T) {
	t.Parallel()
	nc, c := natstest.Connect(t, natstest.Start(t)), fleetConfig()
	js := makeAssets(t, nc, c)
	wanted := *consumer.Assets(c, nc.MaxPayload())[0].Stream
	wanted.AllowRollup, wanted.MaxBytes, wanted.Metadata = true, 1<<20, map[string]string{resources.LevelKey: "1"}
	_, err := js.UpdateStream(t.Context(), wanted)
	require.NoError(t, err)
	require.NoError(t, js.DeleteConsumer(t.Context(), events.StreamEvents, "lane-7"))
	future, err := js.Stream(t.Context(), events.StreamDead)
	require.NoError(t, err)
	newer := future.CachedInfo().Config
	newer.Metadata[resources.LevelKey] = "77"
	_, err = js.UpdateStream(t.Context(), newer)
	require.NoError(t, err)
	lines := doctor.Examine(t.Context(), config(nc, c))
	said(t, lines, doctor.Warn, "assets", "stream PINWHEEL_EVENTS: allow_rollup_hdrs is true and should be not set, max_bytes is 1MiB and should be 64MiB")
	said(t, lines, doctor.Bad, "assets", "missing: consumer lane-7 of PINWHEEL_EVENTS")
	said(t, lines, doctor.Warn, "assets", "stream PINWHEEL_DEAD was made by a newer Pinwheel (level 77")
}

// What to do about something that is missing depends on what was in it: a process creates it empty.
func TestAdviceForWhatIsMissing(t *testing.T) {
	t.Parallel()
	nc, c := natstest.Connect(t, natstest.Start(t)), fleetConfig()
	js := makeAssets(t, nc, c)
	require.NoError(t, js.DeleteConsumer(t.Context(), events.StreamEvents, "lane-7"))
	require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.DefaultBucket))
	require.NoError(t, js.DeleteStream(t.Context(), events.StreamDead))
	lines := doctor.Examine(t.Context(), config(nc, c))
	for text, do := range map[string]string{
		"missing: consumer lane-7":                "start a process: it makes what is missing",
		"missing: stream PINWHEEL_DEAD":           "restore it from a backup if it was there",
		"missing: bucket " + deploy.DefaultBucket: "restore it, or deploy all workers again",
	} {
		found := slices.IndexFunc(lines, func(l doctor.Line) bool {
			return l.Level == doctor.Bad &&
				strings.HasPrefix(l.Text, text)
		})
		require.GreaterOrEqual(t, found, 0, text)
		require.True(t, strings.HasPrefix(lines[found].Do, do), lines[found].Do)
	}
}

// Before the first owner is refused, the doctor says that nearly all of the storage is reserved: of an account, and of
// a server that has a limit of its own.
func TestNearlyAllIsReserved(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"the account":                    `accounts { A { users [{user: a, password: a}], jetstream: { max_store: 1GB } } }`,
		"the server with the least left": `accounts { A { users [{user: a, password: a}], jetstream: enabled } }, jetstream: { max_file_store: 1GB }`,
	} {
		conf := filepath.Join(t.TempDir(), "c.conf")
		require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
		o, err := server.ProcessConfigFile(conf)
		require.NoError(t, err)
		o.JetStream, o.HTTPHost, o.HTTPPort = true, "127.0.0.1", natstest.FreePort(t)
		nc, c := broken(t, o, nats.UserInfo("a", "a")), fleetConfig()
		js, asked := makeAssets(t, nc, c), config(nc, c)
		asked.Monitors = []string{fmt.Sprintf("http://127.0.0.1:%d/", o.HTTPPort)}
		said(t, doctor.Examine(t.Context(), asked), doctor.OK, "reserved", what)
		account, err := js.AccountInfo(t.Context())
		require.NoError(t, err)
		for part, level := range map[int64]doctor.Level{85: doctor.Warn, 97: doctor.Bad} {
			_, err = js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "MORE", Subjects: []string{"more"},
				MaxBytes: 1<<30/100*part - int64(account.ReservedStore)})
			require.NoError(t, err)
			said(t, doctor.Examine(t.Context(), asked), level, "reserved", what)
		}
	}
}

// Three servers and one copy of everything are worth a warning.
func TestOneCopyOnThreeServers(t *testing.T) {
	t.Parallel()
	nc, c := broken(t, &server.Options{JetStream: true}), fleetConfig()
	makeAssets(t, nc, c)
	said(t, doctor.Examine(t.Context(), config(nc, c)), doctor.OK, "durability", "one copy")
	three, err := natstest.Dial(strings.Join([]string{nc.ConnectedUrl(), "nats://127.0.0.1:1", "nats://127.0.0.1:2"}, ","))
	require.NoError(t, err)
	t.Cleanup(three.Close)
	said(t, doctor.Examine(t.Context(), config(three, c)), doctor.Warn, "durability",
		"NATS has 3 servers, and there is one copy of everything")
}

// Events that no process takes, a stream that is nearly full, and dead letters.
func TestEventsThatNobodyRuns(t *testing.T) {
	t.Parallel()
	nc, c := broken(t, &server.Options{JetStream: true}), fleetConfig()
	c.MaxBytes = 1 << 20
	js := makeAssets(t, nc, c)
	for range 9 {
		_, err := js.Publish(t.Context(), c.Prefix.Event(events.Task, "acme", "w"), make([]byte, 100<<10))
		require.NoError(t, err)
	}
	_, err := js.Publish(t.Context(), string(c.Prefix)+".dead.a.w.task.exception.S.1", nil)
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), string(c.Prefix)+".parked.a.task.w", nil)
	require.NoError(t, err)
	lines := doctor.Examine(t.Context(), config(nc, c))
	said(t, lines, doctor.Bad, "progress", "9 events wait and none moved for 300ms; no process asks for them")
	said(t, lines, doctor.Warn, "disk", "stream PINWHEEL_EVENTS: 900.")
	said(t, lines, doctor.Warn, "dead", "1 dead letters")
	said(t, lines, doctor.Warn, "parked", "1 events")
	said(t, lines, doctor.Warn, "strangers", "may do everything; it is on this machine")
}

func TestLimitsOfTheAccount(t *testing.T) {
	t.Parallel()
	nc := broken(t, &server.Options{JetStream: true})
	c := fleetConfig()
	c.MaxBytes = 1 << 50
	lines := doctor.Examine(t.Context(), config(nc, c))
	said(t, lines, doctor.OK, "limits", "storage is limited by the server only")

	// A separate account with low limits.
	conf := t.TempDir() + "/c.conf"
	require.NoError(t,
		os.WriteFile(conf,
			[]byte(
				`accounts { A { users [{user: a, password: a}], jetstream: { max_store: 100MB, max_streams: 2, max_consumers: 3 } } }
jetstream: { max_file_store: 10GB }
`), 0o600))
	o, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)
	nc = broken(t, o, nats.UserInfo("a", "a"))
	lines = doctor.Examine(t.Context(), config(nc, fleetConfig()))
	said(t, lines, doctor.Bad, "limits", "may have 2 streams")
	said(t, lines, doctor.Warn, "limits", "may have 3 consumers")
	said(t, lines, doctor.Bad, "limits", "may store 100.0MiB, and the fleet's streams reserve 517.0MiB")
}

// monitored starts a server with a monitoring port, and returns the URL of that port.
func monitored(t *testing.T, o *server.Options) (*nats.Conn, string) {
	t.Helper()
	o.HTTPHost, o.HTTPPort = "127.0.0.1", natstest.FreePort(t)
	return broken(t, o), fmt.Sprintf("http://127.0.0.1:%d/", o.HTTPPort)
}

func TestDurabilityIsWhatTheServerDoes(t *testing.T) {
	t.Parallel()
	for _, always := range []bool{true, false} {
		nc, url := monitored(t, &server.Options{JetStream: true, SyncAlways: always})
		c := fleetConfig()
		makeAssets(t, nc, c)
		asked := config(nc, c)
		asked.Fsync = true
		said(t, doctor.Examine(t.Context(), asked), doctor.Warn, "durability", "it is not known whether the server does: this user may not ask $SYS")
		asked.Monitors, asked.Replicas = []string{url}, 3
		lines := doctor.Examine(t.Context(), asked)
		if always {
			said(t, lines, doctor.OK, "durability", "one copy, on disk before the publisher gets an ack: survives a power cut, but not the loss of that disk")
		} else {
			said(t, lines, doctor.Bad, "durability", "asks for fsync, and the server does not: one copy, written to the operating system before the publisher gets an ack, and to disk at most 2m0s later")
		}
		said(t, lines, doctor.Bad, "durability", "asks for 3 copies, and there are streams of 1")
		asked.Monitors = []string{"http://127.0.0.1:1"}
		said(t, doctor.Examine(t.Context(), asked), doctor.Warn, "durability", "it is not known whether the server does: Get")
	}
}

// A user that may send requests to $SYS needs no monitoring port.
func TestDurabilityBySYS(t *testing.T) {
	t.Parallel()
	conf := t.TempDir() + "/c.conf"
	require.NoError(t, os.WriteFile(conf, []byte(`
accounts {
  SYS { users [{user: s, password: s}], exports [{service: "$SYS.REQ.SERVER.PING.JSZ", response_type: stream}] }
  A { users [{user: a, password: a}], jetstream: enabled, imports [{service: {account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ"}}] }
}
system_account: SYS
jetstream { sync_interval: 10s }
`), 0o600))
	o, err := server.ProcessConfigFile(conf)
	require.NoError(t, err)
	nc := broken(t, o, nats.UserInfo("a", "a"))
	s, err := doctor.AskSync(t.Context(), nc, nil)
	require.NoError(t, err)
	require.Positive(t, s.Most)
	s.Most, s.Stored, s.Reserved, s.Reservable = 0, 0, 0, 0
	require.Equal(t, doctor.Sync{Known: true, Interval: 10 * time.Second, Servers: 1, From: "$SYS"}, s)
}

// An interval that is longer than nats-server's default is reported. One that is long because of missing quotes is bad.
func TestLongSyncIntervals(t *testing.T) {
	t.Parallel()
	for interval, want := range map[string]struct {
		level doctor.Level
		text  string
	}{
		"2m":     {doctor.Bad, "a power cut loses what was acknowledged in the last 555h33m20s"},
		`"11m"`:  {doctor.Bad, "in the last 11m0s"},
		`"150s"`: {doctor.Warn, "sync_interval is 2m30s, and nats-server's own is 2m0s"},
		`"2m"`:   {doctor.OK, "to disk at most 2m0s later"},
		"always": {doctor.OK, "on disk before the publisher gets an ack"},
	} {
		t.Run(interval, func(t *testing.T) {
			conf := filepath.Join(t.TempDir(), "c.conf")
			require.NoError(t, os.WriteFile(conf, []byte("jetstream { sync_interval: "+interval+" }\n"), 0o600))
			o, err := server.ProcessConfigFile(conf)
			require.NoError(t, err)
			nc, monitor := monitored(t, o)
			c := fleetConfig()
			makeAssets(t, nc, c)
			asked := config(nc, c)
			asked.Monitors = []string{monitor}
			said(t, doctor.Examine(t.Context(), asked), want.level, "durability", want.text)
		})
	}
}

// Processes that lag behind deploys, or know no deployments, are named.
func TestDeploysThatProcessesHaveNotTaken(t *testing.T) {
	t.Parallel()
	nc, c := natstest.Connect(t, natstest.Start(t)), fleetConfig()
	js := makeAssets(t, nc, c)
	kv, err := js.KeyValue(t.Context(), "PINWHEEL_DEPLOYMENTS")
	require.NoError(t, err)
	newest, err := kv.PutString(t.Context(), "acme.w", "{}")
	require.NoError(t, err)
	// The stats of processes: one has taken all, one nothing, and one is of a release that tells nothing of deploys.
	for node, stats := range map[string]any{
		"new": map[string]any{"consumer": map[string]any{"ready": true}, "deploys": map[string]uint64{"workers": 0,
			"deployments": newest}},
		"late": map[string]any{"consumer": map[string]any{"ready": true}, "deploys": map[string]uint64{"workers": 0,
			"deployments": newest - 1}},
		"old": map[string]any{"consumer": map[string]any{"ready": true}},
	} {
		s, err := micro.AddService(nc, micro.Config{
			Name: "pinwheel", Version: "1.0.0", Metadata: map[string]string{"prefix": string(c.Prefix), "node": node,
				"version": "1.0.0"},
			StatsHandler: func(*micro.Endpoint) any { return stats },
		})
		require.NoError(t, err)
		require.NoError(t, s.AddEndpoint("x", micro.HandlerFunc(func(micro.Request) {}), micro.WithEndpointSubject("x")))
		t.Cleanup(func() { _ = s.Stop() })
	}
	lines := doctor.Examine(t.Context(), config(nc, c))
	said(t, lines, doctor.Warn, "deploys", "whatever deployments say: old")
	said(t, lines, doctor.Warn, "deploys", fmt.Sprintf("processes have not taken all that deploys stored: late (versions 0 of 0, deployments %d of %d)", newest-1, newest))
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a.>", "a.b.c", true}, {"a.>", "a", false}, {">", "a.>", true}, {"a.*", "a.b", true}, {"a.*", "a.>", false},
		{"a.*.c", "a.b.*", false}, {"a.b", "a.b.c", false},
		{"*.b", "a.b", true}, {"a.>", "a.>", true}, {"a.>", "a.*", true},
	} {
		require.Equal(t, c.want, doctor.Covers(c.a, c.b), "%s covers %s", c.a, c.b)
	}
}

// A client that acknowledges what it gets answers publishers before the stream does.
func TestStrangersThatAnswerPublishers(t *testing.T) {
	t.Parallel()
	nc := broken(t, &server.Options{JetStream: true})
	c := fleetConfig()
	makeAssets(t, nc, c)
	stranger, err := natstest.Dial(nc.ConnectedUrl())
	require.NoError(t, err)
	t.Cleanup(stranger.Close)
	for _, subject := range []string{"$KV.PINWHEEL_WORKERS.>", "pinwheel.events.>"} {
		_, err := stranger.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte("+ACK")) })
		require.NoError(t, err)
	}
	require.NoError(t, stranger.Flush())
	lines := doctor.Examine(t.Context(), config(nc, c))
	var named []string
	for _, l := range lines {
		if l.Check == "answers" {
			require.Equal(t, doctor.Bad, l.Level)
			require.Contains(t, l.Text, `a client that is not Pinwheel's answers "+ACK" to what is published to `)
			require.Contains(t, l.Do, "find the client that subscribes to this subject")
			named = append(named, l.Text)
		}
	}
	require.Len(t, named, 3, "%+v", lines) // also for what sources store
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_PINWHEEL_WORKERS")
	require.NoError(t, err)
	require.Zero(t, stream.CachedInfo().State.Msgs, "nothing is stored")
}
