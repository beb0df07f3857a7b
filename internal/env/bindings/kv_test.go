package bindings

import (
	"context"
	"fmt"
	"strconv"
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
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// process is what one process of a fleet has.
type process struct {
	*testing.T
	*Bindings
	js jetstream.JetStream
}

func open(t *testing.T, nc *nats.Conn) process {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := New(nc, js, Config{Replicas: 1, KVBytes: 16 << 20, CacheBytes: 8 << 20, Log: zerolog.Nop()},
		prometheus.NewRegistry())
	require.NoError(t, err)
	return process{t, b, js}
}

func start(t *testing.T) process {
	t.Helper()
	return open(t, natstest.Connect(t, natstest.Start(t)))
}

// call calls a method of a KV binding of an owner to the namespace "space".
func (p process) call(owner, method, body string, texts ...string) (lifecycle.Answer, error) {
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	return p.Bindings.Call(ctx, &lifecycle.Call{
		Owner: owner, Binding: workers.Binding{Kind: workers.BindingKV, Name: "KV", Value: "space"}, Method: method,
		Texts: texts, Body: []byte(body),
		Wrote: &atomic.Bool{}, Hold: func(int) error { return nil },
	})
}

func (p process) put(owner, key, value string) {
	p.Helper()
	_, err := p.call(owner, "put", value, key, "", "", "")
	require.NoError(p, err)
}

// get returns the value of a key, and "" if it is not there.
func (p process) get(owner, key string) string {
	p.Helper()
	a, err := p.call(owner, "get", "", key)
	require.NoError(p, err)
	return string(a.Body)
}

// names lists the names of all keys with a prefix, page by page.
func (p process) names(owner, prefix string, limit int) (names []string) {
	p.Helper()
	for cursor := ""; ; {
		a, err := p.call(owner, "list", "", prefix, strconv.Itoa(limit), cursor)
		require.NoError(p, err)
		for i := 1; i < len(a.Texts); i += 3 {
			names = append(names, a.Texts[i])
		}
		if cursor = a.Texts[0]; cursor == "" {
			return names
		}
	}
}

// A key has one subject, which NATS takes, and the filters of each of its prefixes match it.
func TestKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.StringN(1, -1, maxKey), rapid.StringMatching(`([a-z]{0,3}[:/]){0,20}[a-z.*> =]{0,3}x`)).
			Draw(t, "key")
		tokens := encodeKey(key)
		back, ok := decodeKey(tokens)
		require.True(t, ok)
		require.Equal(t, key, back)
		subject := "$KV.B.space." + tokens
		for token := range strings.SplitSeq(tokens, ".") {
			require.Regexp(t, `^[A-Za-z0-9_=-]+$`, token)
		}
		require.LessOrEqual(t, strings.Count(tokens, ".")+1, maxTokens)
		prefix := key[:rapid.IntRange(0, len(key)).Draw(t, "prefix")]
		matches := 0
		for _, filter := range filters("$KV.B.space.", prefix) {
			parent, wild := strings.CutSuffix(filter, ">")
			if subject == filter || wild && strings.HasPrefix(subject, parent) && len(subject) > len(parent) {
				matches++
			}
		}
		require.Equal(t, 1, matches, "%q %q", key, prefix)
	})
}

func FuzzDecodeKey(f *testing.F) {
	for _, s := range []string{"user=3A.42", "=", "=4", "=41", "a..b", ".a", "=3a", "=cursors", "a.b",
		strings.Repeat("=3A.", 20) + "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tokens string) {
		if key, ok := decodeKey(tokens); ok {
			require.Equal(t, tokens, encodeKey(key))
		}
	})
}

func FuzzReadCursor(f *testing.F) {
	b := &bucket{secret: []byte("secret")}
	good := b.cursor("base", "prefix", "after", "snapshot")
	f.Add(good)
	f.Add("!")
	f.Add("")
	f.Add(b.cursor("other", "prefix", "after", "snapshot"))
	f.Fuzz(func(t *testing.T, cursor string) {
		after, snapshot, err := b.readCursor("base", "prefix", cursor)
		if err == nil && cursor != "" {
			require.Equal(t, cursor, b.cursor("base", "prefix", after, snapshot))
		}
	})
}

// Owners have the same keys of the same namespaces, each its own. No key of one names data of another.
func TestOwnersAreApart(t *testing.T) {
	t.Parallel()
	p := start(t)
	for _, owner := range []string{"acme", "acme2", "beta"} {
		p.put(owner, "k", "of "+owner)
	}
	for _, owner := range []string{"acme", "acme2", "beta"} {
		require.Equal(t, "of "+owner, p.get(owner, "k"))
		require.Equal(t, []string{"k"}, p.names(owner, "", 0))
	}
	for _, key := range []string{"*", ">", "k.>", "../beta/k", "=cursors", "=6B", "$KV.PINWHEEL_KV_beta.space.k", "k\x00",
		"k\r\nNats-Rollup: all"} {
		require.Empty(t, p.get("acme", key), key)
		_, err := p.call("acme", "delete", "", key)
		require.NoError(t, err, key)
	}
	require.Equal(t, "of acme", p.get("acme", "k"))
	require.Equal(t, "of beta", p.get("beta", "k"))
}

// nats-server keeps an owner to its bytes. Others notice nothing, and what is removed makes room.
func TestAnOwnerHasItsBytes(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.catalog.SetPolicy("acme", workers.Policy{KVBytes: 1 << 20})
	p.put("acme", "small", "1")
	value := strings.Repeat("v", 100<<10)
	var err error
	stored := 0
	for ; err == nil && stored < 20; stored++ {
		_, err = p.call("acme", "put", value, fmt.Sprint("k", stored), "", "", "")
	}
	require.ErrorContains(t, err, "KV PUT failed: 413 the owner's data would have more bytes than the owner may store (policy kvBytes)")
	require.Greater(t, stored, 8)
	p.put("beta", "k", value)
	require.Equal(t, "1", p.get("acme", "small"), "what is stored stays")
	p.put("acme", "k0", value) // another value of the same size
	_, err = p.call("acme", "delete", "", "k0")
	require.NoError(t, err)
	p.put("acme", "again", value)

	p.catalog.SetPolicy("acme", workers.Policy{KVBytes: 2 << 20})
	for i := range 5 {
		p.put("acme", fmt.Sprint("more", i), value)
	}
	p.catalog.SetPolicy("acme", workers.Policy{KVBytes: 1000})
	require.Len(t, p.get("acme", "more4"), len(value), "what is stored stays")
	_, err = p.call("acme", "put", "x", "x", "", "", "")
	require.ErrorContains(t, err, "413")
}

func TestValuesExpire(t *testing.T) {
	t.Parallel()
	p := start(t)
	_, err := p.call("acme", "put", "1", "ttl", "1", "", `{"a":1}`)
	require.NoError(t, err)
	at := time.Now().Add(2 * time.Second).Unix()
	_, err = p.call("acme", "put", "1", "at", "", strconv.FormatInt(at, 10), "")
	require.NoError(t, err)
	p.put("acme", "stays", "1")
	a, err := p.call("acme", "list", "", "a", "0", "")
	require.NoError(t, err)
	require.Equal(t, []string{"", "at", strconv.FormatInt(at, 10), ""}, a.Texts)
	require.Eventually(t, func() bool {
		return len(p.names("acme", "", 0)) == 1 && p.get("acme", "ttl")+
			p.get("acme", "at") == ""
	}, time.Minute, 50*time.Millisecond)
	s, err := p.js.Stream(t.Context(), "KV_"+KVBucket("acme"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { // and the server removes it
		info, err := s.Info(t.Context())
		return err == nil && info.State.Msgs == 2 // and the secret of cursors
	}, time.Minute, 50*time.Millisecond)
}

// A list goes on where its page ended, in any process. A cursor is for its owner, namespace and prefix.
func TestLists(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	p, other := open(t, nc), open(t, nc)
	var want []string
	for i := range 250 {
		key := fmt.Sprintf("user:%03d:x", i)
		want = append(want, key)
		p.put("acme", key, "")
		p.put("acme", fmt.Sprint("else", i), "")
	}
	require.Equal(t, want, p.names("acme", "user:", 100))
	require.Equal(t, want, other.names("acme", "us", 33))
	require.Len(t, p.names("acme", "", 0), 500)

	a, err := p.call("acme", "list", "", "user:", "10", "")
	require.NoError(t, err)
	cursor := a.Texts[0]
	a, err = other.call("acme", "list", "", "user:", "1", cursor)
	require.NoError(t, err)
	require.Equal(t, want[10], a.Texts[1])
	for _, c := range []struct{ owner, prefix, cursor string }{
		{"beta", "user:", cursor}, {"acme", "user", cursor}, {"acme", "user:", cursor[:len(cursor)-1]},
		{"acme", "user:", "x" + cursor}, {"acme", "user:", "AAAA"},
	} {
		_, err := p.call(c.owner, "list", "", c.prefix, "10", c.cursor)
		require.ErrorContains(t, err, "400 Invalid cursor")
	}
	s := p.kv.lists.kept
	require.NotEmpty(t, s)
	for _, snapshot := range s {
		require.Equal(t, "acme", snapshot.owner)
	}
}

// Lists that are kept for their next pages stay within the bounds of their owner and the process.
func TestKeptListsAreBounded(t *testing.T) {
	t.Parallel()
	var l lists
	big := func(owner string) *snapshot {
		return &snapshot{owner: owner, size: maxKeptOfOwner / 2, made: time.Now()}
	}
	require.NotEmpty(t, l.keep(big("acme")))
	require.NotEmpty(t, l.keep(big("acme")))
	require.Empty(t, l.keep(big("acme")))
	for i := range 6 {
		require.NotEmpty(t, l.keep(big(fmt.Sprint(i))))
	}
	require.Empty(t, l.keep(big("last")), "the process has no room")
	for _, s := range l.kept {
		s.made = s.made.Add(-keptFor - time.Second)
	}
	require.NotEmpty(t, l.keep(big("last")))
	require.Equal(t, maxKeptOfOwner/2, l.bytes)
}

// A bucket that is gone is made again. Many calls at once, in two processes, make one.
func TestBucketIsMade(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	p, other := open(t, nc), open(t, nc)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() { []process{p, other}[i%2].put("acme", fmt.Sprint(i), "x") })
	}
	all.Wait()
	require.Len(t, p.names("acme", "", 0), 40)
	require.NoError(t, p.js.DeleteKeyValue(t.Context(), KVBucket("acme")))
	_, err := p.call("acme", "get", "", "1")
	require.ErrorContains(t, err, "KV GET failed: 503")
	require.Empty(t, p.get("acme", "1"))
	p.put("acme", "1", "y")
	require.Equal(t, "y", p.get("acme", "1"))
}

// Go checks what JavaScript has checked, too.
func TestArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	p := start(t)
	long := strings.Repeat("k", maxKey+1)
	for _, c := range []struct {
		method, body string
		texts        []string
		want         string
	}{
		{"get", "", []string{""}, `400 "" is not allowed`},
		{"get", "", []string{".."}, `400 ".." is not allowed`},
		{"get", "", []string{long}, "414"},
		{"get", "", nil, "400 0 arguments, not 1"},
		{"getMany", "", append(make([]string, maxMany), "x"), "maximum of 100"},
		{"getMany", "", []string{"a", long}, "414"},
		{"put", "", []string{"k", "0", "", ""}, "Invalid expiration_ttl of 0"},
		{"put", "", []string{"k", "99999999999999999999", "", ""}, "Invalid expiration_ttl"},
		{"put", "", []string{"k", "", "5", ""}, "Invalid expiration of 5"},
		{"put", "", []string{"k", "", "9223372036854775807", ""}, "Invalid expiration"},
		{"put", "", []string{"k", "", "", "{"}, "no JSON"},
		{"put", "", []string{"k", "", "", "1\r\nNats-Rollup: all"}, "no JSON"},
		{"put", "", []string{"k", "", "", `"` + strings.Repeat("m", maxMetadata) + `"`}, "413 Metadata length"},
		{"put", strings.Repeat("v", MaxValue+1), []string{"k", "", "", ""}, "413 Value length"},
		{"delete", "", []string{long}, "414"},
		{"list", "", []string{long, "0", ""}, "414"},
		{"list", "", []string{"", "1001", ""}, "key_count_limit"},
		{"list", "", []string{"", "x", ""}, "key_count_limit"},
		{"purge", "", []string{"k"}, `no method "purge"`},
	} {
		_, err := p.call("acme", c.method, c.body, c.texts...)
		require.ErrorContains(t, err, c.want, "%s %.20q", c.method, c.texts)
	}
	p.put("acme", strings.Repeat("*", maxKey), "escaped")
	require.Equal(t, []string{strings.Repeat("*", maxKey)}, p.names("acme", strings.Repeat("*", 100), 0))
	p.put("acme", strings.Repeat("k", maxKey), strings.Repeat("v", MaxValue))
	require.Len(t, p.get("acme", strings.Repeat("k", maxKey)), MaxValue)
}

func TestCallsHaveARate(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.catalog.SetPolicy("acme", workers.Policy{BindingCalls: 1})
	p.get("acme", "k")
	_, err := p.call("acme", "get", "", "k")
	require.ErrorContains(t, err, "KV GET failed: 429 the owner's bindings may be called 1 times in a second")
	p.get("beta", "k")

	// Methods that cost nats-server more count more.
	p.catalog.SetPolicy("gamma", workers.Policy{BindingCalls: 25})
	p.names("gamma", "", 0)
	_, err = p.call("gamma", "list", "", "", "0", "")
	require.ErrorContains(t, err, "429")
}

// What others have written into the bucket is no error.
func TestForeignMessages(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.put("acme", "k", "v")
	kv, err := p.js.KeyValue(t.Context(), KVBucket("acme"))
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "space.by=3A.hand", "value")
	require.NoError(t, err)
	for _, key := range []string{"space.not=a.key", "space.a.b", "elsewhere.k"} {
		_, err = kv.PutString(t.Context(), key, "value")
		require.NoError(t, err)
	}
	m := nats.NewMsg("$KV." + KVBucket("acme") + ".space.headers")
	m.Header.Set(headerMetadata, "{broken")
	m.Header.Set(headerExpires, "soon")
	_, err = p.js.PublishMsg(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, kv.Delete(t.Context(), "space.k"))
	require.Empty(t, p.get("acme", "k"))
	require.Equal(t, "value", p.get("acme", "by:hand"))
	a, err := p.call("acme", "list", "", "", "0", "")
	require.NoError(t, err)
	require.Equal(t, []string{"", "by:hand", "", "", "headers", "", ""}, a.Texts)
}

func BenchmarkKV(b *testing.B) {
	nc := natstest.Connect(b, natstest.Start(b))
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	all, err := New(nc, js, Config{Replicas: 1, KVBytes: 16 << 20, CacheBytes: 8 << 20, Log: zerolog.Nop()},
		prometheus.NewRegistry())
	require.NoError(b, err)
	all.catalog.SetPolicy("acme", workers.Policy{BindingCalls: 1_000_000})
	call := func(method, body string, texts ...string) {
		_, err := all.Call(b.Context(), &lifecycle.Call{
			Owner: "acme", Binding: workers.Binding{Kind: workers.BindingKV, Name: "KV", Value: "space"}, Method: method,
			Texts: texts, Body: []byte(body),
			Wrote: &atomic.Bool{}, Hold: func(int) error { return nil },
		})
		require.NoError(b, err)
	}
	value := strings.Repeat("v", 1024)
	b.Run("put", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			call("put", value, fmt.Sprint("put", i%1000), "", "", "")
		}
	})
	b.Run("get", func(b *testing.B) {
		call("put", value, "k", "", "", "")
		b.ReportAllocs()
		for b.Loop() {
			call("get", "", "k")
		}
	})
	b.Run("list20000", func(b *testing.B) {
		for i := range 20_000 {
			call("put", "x", fmt.Sprint("list:", i), "", "", "")
		}
		for b.Loop() {
			for cursor, more := "", true; more; more = cursor != "" {
				a, err := all.Call(b.Context(), &lifecycle.Call{
					Owner: "acme", Binding: workers.Binding{Kind: workers.BindingKV, Name: "KV", Value: "space"}, Method: "list",
					Texts: []string{"list:", "0", cursor},
					Wrote: &atomic.Bool{}, Hold: func(int) error { return nil },
				})
				require.NoError(b, err)
				cursor = a.Texts[0]
			}
		}
	})
}
