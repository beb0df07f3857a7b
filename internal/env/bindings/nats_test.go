package bindings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// bus calls a NATS binding of acme, whose worker and whose owner may use all subjects unless a test says otherwise.
type bus struct {
	process
	nc      *nats.Conn
	granted workers.NATSSubjects
	held    atomic.Int64
	room    int64
}

func startBus(t *testing.T) *bus {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	all, err := New(nc, js, Config{Replicas: 1, Prefix: "pinwheel", ReplyPrefixes: []string{"replies.{owner}."},
		Log: zerolog.Nop()}, prometheus.NewRegistry())
	require.NoError(t, err)
	all.catalog.SetPolicy("acme", workers.Policy{NATSPublish: []string{">"}, NATSRequest: []string{">"},
		BindingCalls: 1_000_000})
	return &bus{process: process{t, all, js}, nc: nc, granted: workers.NATSSubjects{Publish: []string{">"},
		Request: []string{">"}}, room: 64 << 20}
}

func (b *bus) call(method, body string, texts ...string) (lifecycle.Answer, error) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	value, err := json.Marshal(b.granted)
	require.NoError(b, err)
	return b.Bindings.Call(ctx, &lifecycle.Call{
		Owner: "acme", Binding: workers.Binding{Kind: workers.BindingNATS, Name: "BUS", Value: string(value)}, Method: method,
		Texts: texts, Body: []byte(body), Wrote: &atomic.Bool{},
		Hold: func(n int) error {
			if b.held.Add(int64(n)) > b.room {
				return errors.New("no room")
			}
			return nil
		},
	})
}

// all subscribes to everything that is published, and returns what has come when the server has all of it.
func (b *bus) all() func() []*nats.Msg {
	sub, err := b.nc.SubscribeSync(">")
	require.NoError(b, err)
	require.NoError(b, b.nc.Flush())
	return func() (list []*nats.Msg) {
		require.NoError(b, b.nc.Flush())
		for {
			m, err := sub.NextMsg(time.Millisecond)
			if err != nil {
				return list
			}
			list = append(list, m)
		}
	}
}

func TestNATSPublish(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	_, err := b.call("publish", "body", "orders.new", "js")
	require.ErrorContains(t, err, "NATS publish failed: 503 no subscriber answers at this subject")
	seen := b.all()
	_, err = b.call("publish", "body", "orders.new", "", "x-a", "1", "x-a", "2")
	require.NoError(t, err)
	list := seen()
	require.Len(t, list, 1)
	require.Equal(t, "orders.new body [1 2]", fmt.Sprintf("%s %s %v", list[0].Subject, list[0].Data,
		list[0].Header["x-a"]))
	_, err = b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	require.NoError(t, err)
	a, err := b.call("publish", "body", "orders.new", "js")
	require.NoError(t, err)
	require.Equal(t, []string{"ORDERS", "1"}, a.Texts)
}

func TestNATSRequest(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	_, err := b.call("request", "", "billing.pay", "60000")
	require.ErrorContains(t, err, "NATS request failed: 503 no subscriber answers at this subject")
	_, err = b.nc.Subscribe("billing.*", func(m *nats.Msg) {
		switch string(m.Data) {
		case "silent":
		case "large":
			_ = m.Respond(make([]byte, maxNATSReply-1000))
		case "larger":
			_ = m.RespondMsg(&nats.Msg{Data: make([]byte, maxNATSReply-10),
				Header: nats.Header{"A": []string{strings.Repeat("a", 100)}}})
		default:
			_ = m.RespondMsg(&nats.Msg{Data: append([]byte("re: "), m.Data...), Header: nats.Header{"X-A": []string{"1", "2"}}})
		}
	})
	require.NoError(t, err)
	a, err := b.call("request", "pay", "billing.pay", "")
	require.NoError(t, err)
	require.Equal(t, "re: pay [X-A 1 X-A 2]", fmt.Sprintf("%s %v", a.Body, a.Texts))
	_, err = b.call("request", "silent", "billing.pay", "1")
	require.ErrorContains(t, err, "504 there was no answer in time")
	for _, timeout := range []string{"0", "-1", "NaN", "1e9", "x"} {
		_, err = b.call("request", "pay", "billing.pay", timeout)
		require.ErrorContains(t, err, "400 timeoutMs is "+timeout)
	}
	b.held.Store(0)
	_, err = b.call("request", "large", "billing.pay", "")
	require.NoError(t, err)
	require.Greater(t, b.held.Load(), int64(maxNATSReply-1000))
	b.room = 1000
	_, err = b.call("request", "large", "billing.pay", "")
	require.ErrorContains(t, err, "429 no room")
}

// What neither the manifest nor the policy may grant, and what they do not grant, is not sent. A policy holds at once.
func TestNATSForged(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	seen := b.all()
	long := strings.Repeat("x", 300)
	for subject, want := range map[string]string{
		"": "an empty token", "a..b": "an empty token", "a.": "an empty token", "*": "a wildcard", "a.>": "a wildcard",
		"a.b*c": "a wildcard",
		"a b":   "another character", "a\tb": "another character", "a\r\nPUB pinwheel.x 1\r\nx": "another character",
		"a\x00": "another character", "ä": "another character",
		"$JS.API.STREAM.DELETE.PINWHEEL_EVENTS": "those of NATS itself",
		"$KV.PINWHEEL_WORKERS.acme.w":           "those of NATS itself", "$SYS.REQ.SERVER.PING": "those of NATS itself",
		"_INBOX.abc.def": "those of NATS itself", "_R_.x": "those of NATS itself", "pinwheel": "the fleet's own",
		"pinwheel.events.task.beta.w":      "the fleet's own",
		"pinwheel.owner.beta.workers.list": "the fleet's own", "pinwheel.control.dead.list": "the fleet's own",
		"replies.acme.1": "the fleet's own", "replies.beta.1": "the fleet's own",
		long: "has 300 bytes",
	} {
		for _, method := range []string{"publish", "request"} {
			_, err := b.call(method, "", subject, "")
			require.ErrorContains(t, err, want, "%s %q", method, subject)
		}
	}
	seen()
	for _, header := range [][2]string{
		{"Nats-Msg-Id", "1"}, {"nAtS-rollup", "all"}, {"Nats-Expected-Stream", "x"}, {"Status", "503"}, {"Description", "x"},
		{"Dead-Letter-Seq", "1"}, {"Reply-To", "x"}, {"reply-to", "x"},
		{"", "x"}, {"a b", "x"}, {"a:", "x"}, {"a\r\nb", "x"}, {"ä", "x"}, {"a", "x\r\nNats-Rollup: all"}, {"a", "x\ny"},
		{"a", "\x00"}, {"a", strings.Repeat("x", maxNATSHeaders)},
	} {
		_, err := b.call("publish", "", "x", "", header[0], header[1])
		require.Error(t, err, header[0])
	}
	for _, texts := range [][]string{nil, {"x"}, {"x", "", "a"}} {
		_, err := b.call("publish", "", texts...)
		require.ErrorContains(t, err, "400")
	}
	_, err := b.call("publish", strings.Repeat("x", maxNATSBody+1), "x", "")
	require.ErrorContains(t, err, "413 the body")
	_, err = b.call("subscribe", "", "x", "")
	require.ErrorContains(t, err, `no method "subscribe"`)

	b.granted = workers.NATSSubjects{Publish: []string{"orders.*"}}
	_, err = b.call("publish", "", "orders.a.b", "")
	require.ErrorContains(t, err, `403 subject "orders.a.b" is none of those that the manifest names for BUS`)
	_, err = b.call("request", "", "orders.a", "")
	require.ErrorContains(t, err, "none of those that the manifest names")
	b.catalog.SetPolicy("acme", workers.Policy{NATSPublish: []string{"orders.b"}})
	_, err = b.call("publish", "", "orders.a", "")
	require.ErrorContains(t, err, `403 subject "orders.a" is not granted to the owner`)
	b.catalog.SetPolicy("acme", workers.Policy{})
	_, err = b.call("publish", "", "orders.b", "")
	require.ErrorContains(t, err, "not granted")
	require.Empty(t, seen())
}

// Very many calls at once are answered, each of them.
func TestNATSManyCalls(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	sub, err := b.nc.Subscribe("orders.*", func(*nats.Msg) {})
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(-1, -1))
	var failed atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for i := range 100 {
				if _, err := b.call("publish", "x", "orders."+[]string{"a", "*"}[i%2], ""); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 5000, failed.Load())
	require.NoError(t, b.nc.Flush())
	require.Eventually(t, func() bool { n, err := sub.Delivered(); return err == nil && n == 5000 }, time.Minute,
		time.Millisecond)
}

func FuzzNATSSubject(f *testing.F) {
	for _, s := range []string{"a.b", "$JS.API", "_INBOX.x", "pinwheel.events.task.a.b", "a..b", "a b", "replies.a.b"} {
		f.Add(s)
	}
	n := &natsCalls{backend{cfg: Config{Prefix: "pinwheel", ReplyPrefixes: []string{"replies.{owner}."}},
		policy: func(string) workers.Policy { return workers.Policy{NATSPublish: []string{">"}} }}}
	f.Fuzz(func(t *testing.T, subject string) {
		c := &lifecycle.Call{Owner: "acme", Binding: workers.Binding{Value: `{"publish":[">"]}`},
			Texts: []string{subject, ""}}
		m, _, err := n.message(c,
			func(p workers.Policy, s workers.NATSSubjects) (owner, worker []string) {
				return p.NATSPublish, s.Publish
			})
		if err == nil {
			require.Regexp(t, `^[!-)+-=?-~]+$`, m.Subject)
			require.NotRegexp(t, `^[$_]|^pinwheel(\.|$)|^replies\.|\.\.|^\.|\.$`, m.Subject)
		}
	})
}
