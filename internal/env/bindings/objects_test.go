package bindings

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

var free = func(int) error { return nil }

// inBucket calls a method of an objects binding of an owner to the bucket "files".
func (p process) inBucket(owner, method string, body []byte, hold func(int) error,
	texts ...string) (lifecycle.Answer, error) {
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	return p.Bindings.Call(ctx, &lifecycle.Call{
		Owner: owner, Binding: workers.Binding{Kind: workers.BindingObjects, Name: "FILES", Value: "files"}, Method: method,
		Texts: texts, Body: body,
		Wrote: &atomic.Bool{}, Hold: hold,
	})
}

// always is no condition.
var always = []string{"", "", "", "", ""}

func putting(key string, cond []string) []string {
	return slices.Concat([]string{key, "", ""}, cond, make([]string, len(httpFields)))
}

func (p process) putObject(owner, key string, body []byte) {
	p.Helper()
	_, err := p.inBucket(owner, "put", body, free, putting(key, always)...)
	require.NoError(p, err)
}

// object returns the data of an object; nil if it is not there.
func (p process) object(owner, key, part string) []byte {
	p.Helper()
	a, err := p.inBucket(owner, "get", nil, free, append([]string{key, part}, always...)...)
	require.NoError(p, err)
	if len(a.Texts) == 0 {
		return nil
	}
	return append([]byte{}, a.Body...)
}

// versions are the versions of an owner that have chunks, and those that objects have.
func (p process) versions(owner string) (chunks, named []string) {
	p.Helper()
	s, err := p.js.Stream(p.Context(), "OBJ_"+ObjectsBucket(owner))
	require.NoError(p, err)
	info, err := s.Info(p.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(p, err)
	store, err := p.js.ObjectStore(p.Context(), ObjectsBucket(owner))
	require.NoError(p, err)
	for subject := range info.State.Subjects {
		if id, ok := strings.CutPrefix(subject, "$O."+ObjectsBucket(owner)+".C."); ok {
			chunks = append(chunks, id)
		}
	}
	list, err := store.List(p.Context())
	if !errors.Is(err, jetstream.ErrNoObjectsFound) {
		require.NoError(p, err)
	}
	for _, o := range list {
		if o.Size > 0 {
			named = append(named, o.NUID)
		}
	}
	slices.Sort(chunks)
	slices.Sort(named)
	return chunks, named
}

func large(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>9)
	}
	return data
}

// Objects have as many bytes as they had, whole and in parts, and the nats command reads them too.
func TestObjectsOfAllSizes(t *testing.T) {
	t.Parallel()
	p := start(t)
	for _, size := range []int{0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 5*chunkBytes + 7} {
		data, key := large(size), fmt.Sprint("dir/size ", size)
		p.putObject("acme", key, data)
		require.True(t, bytes.Equal(data, p.object("acme", key, "")), size)
		for _, r := range [][2]int{{0, 1}, {chunkBytes - 1, 2}, {chunkBytes, 1}, {3*chunkBytes + 5, chunkBytes},
			{size - 1, 1}} {
			if r[0] >= 0 && r[0]+r[1] <= size {
				require.True(t, bytes.Equal(data[r[0]:r[0]+r[1]], p.object("acme", key, fmt.Sprintf("%d,%d", r[0], r[1]))), "%d %v",
					size, r)
			}
		}
		store, err := p.js.ObjectStore(t.Context(), ObjectsBucket("acme"))
		require.NoError(t, err)
		read, err := store.GetBytes(t.Context(), "files/"+key)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, read))
	}
	_, err := p.inBucket("acme", "put", make([]byte, maxObject+1), free, putting("k", always)...)
	require.ErrorContains(t, err, "put: Your proposed upload of 26214401 bytes exceeds")
	p.putObject("acme", "most", large(maxObject))
	require.Len(t, p.object("acme", "most", ""), maxObject)
	chunks, named := p.versions("acme")
	require.Equal(t, named, chunks)
}

// An object that the nats command has put is an object.
func TestObjectsOfTheNATSCommand(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.putObject("acme", "own", []byte("x"))
	store, err := p.js.ObjectStore(t.Context(), ObjectsBucket("acme"))
	require.NoError(t, err)
	data := large(300_000)
	_, err = store.Put(t.Context(), jetstream.ObjectMeta{Name: "files/foreign",
		Opts: &jetstream.ObjectMetaOptions{ChunkSize: 1000}}, bytes.NewReader(data))
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, p.object("acme", "foreign", "")))
	require.True(t, bytes.Equal(data[200_000:200_010], p.object("acme", "foreign", "200000,10")))
	info, err := store.GetInfo(t.Context(), "files/own")
	require.NoError(t, err)
	_, err = store.AddLink(t.Context(), "files/link", info)
	require.NoError(t, err)
	require.Nil(t, p.object("acme", "link", ""))
	require.NoError(t, store.Delete(t.Context(), "files/foreign"))
	require.Nil(t, p.object("acme", "foreign", ""))
	p.putObject("acme", "foreign", []byte("mine"))
	require.Equal(t, "mine", string(p.object("acme", "foreign", "")))
	for _, text := range []string{"", "{", `{"nuid":"> "}`, `{"nuid":"x","size":9999999999999}`,
		`{"nuid":"gone","size":5,"headers":{"Pinwheel-Chunks":["1+9999999999"]}}`} {
		_, err := p.js.Publish(t.Context(), named{"acme", "files/broken"}.meta(), []byte(text))
		require.NoError(t, err)
		a, err := p.inBucket("acme", "get", nil, free, append([]string{"broken", ""}, always...)...)
		require.True(t, err != nil || len(a.Texts) == 0, text)
	}
	p.putObject("acme", "broken", []byte("whole"))
	require.Equal(t, "whole", string(p.object("acme", "broken", "")))
}

// No key of an owner names an object of another, and none of a bucket one of another bucket.
func TestObjectsOfOwnersAreApart(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.putObject("beta", "k", []byte("beta's"))
	odd := []string{
		"../PINWHEEL_OBJ_beta/files/k", "..", ".", "/", "", "a\x00b", "\r\nNats-Rollup: all", "*", ">",
		"$O.PINWHEEL_OBJ_beta.M.x", "files/k", strings.Repeat("k", maxObjectKey),
		"\xff\xfe", "k\x1b", "../k", "files", "é", strings.Repeat("/", 500),
	}
	for i, key := range odd {
		require.Nil(t, p.object("acme", key, ""), "%q", key)
		p.putObject("acme", key, fmt.Append(nil, i))
	}
	for i, key := range odd {
		require.Equal(t, fmt.Sprint(i), string(p.object("acme", key, "")), "%q", key)
	}
	_, err := p.inBucket("acme", "delete", nil, free, odd...)
	require.NoError(t, err)
	for _, key := range odd {
		require.Nil(t, p.object("acme", key, ""), "%q", key)
	}
	require.Equal(t, "beta's", string(p.object("beta", "k", "")))
	chunks, named := p.versions("acme")
	require.Empty(t, chunks)
	require.Empty(t, named)
	for _, method := range []string{"head", "delete"} {
		_, err = p.inBucket("acme", method, nil, free, strings.Repeat("k", maxObjectKey+1))
		require.ErrorContains(t, err, method+": The specified object name is not valid. (10020)")
	}
}

// An owner at its bytes gets an error, which leaves nothing behind, and others notice nothing.
func TestObjectBytesAreBounded(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.catalog.SetPolicy("acme", workers.Policy{ObjectBytes: 3 << 20})
	p.putObject("acme", "kept", large(1<<20))
	for range 3 {
		_, err := p.inBucket("acme", "put", large(4<<20), free, putting("too large", always)...)
		require.ErrorContains(t, err, "put: 413 the owner's data would have more bytes than the owner may store (policy objectBytes)")
	}
	_, err := p.inBucket("acme", "put", large(3<<20), free, putting("kept", always)...)
	require.ErrorContains(t, err, "413")
	require.Len(t, p.object("acme", "kept", ""), 1<<20)
	chunks, named := p.versions("acme")
	require.Equal(t, named, chunks)
	p.putObject("acme", "more", large(1<<20))
	p.putObject("beta", "large", large(4<<20))
	p.catalog.SetPolicy("acme", workers.Policy{ObjectBytes: 8 << 20})
	p.putObject("acme", "too large", large(4<<20))
}

// What a process leaves that dies in a put is removed when the owner's bytes run out: not sooner, and nothing else.
func TestChunksOfDeadPutsAreSwept(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.putObject("acme", "kept", large(300_000))
	o, n := p.objects, named{"acme", "files/kept"}
	b, err := o.buckets.of(t.Context(), "acme")
	require.NoError(t, err)
	abandoned := &upload{named: n, data: large(300_000)}
	abandoned.info.Headers = nats.Header{}
	require.NoError(t, o.upload(t.Context(), b, abandoned), "a put that never comes to its description")
	lost := &upload{named: named{"acme", "files/never there"}, data: large(10)}
	lost.info.Headers = nats.Header{}
	require.NoError(t, o.upload(t.Context(), b, lost))
	_, err = p.js.Publish(t.Context(), n.chunks("foreign"), []byte("by hand"))
	require.NoError(t, err)
	require.Zero(t, o.sweep(t.Context(), b, "acme", time.Now()), "the put may be under way")
	require.Zero(t, o.sweep(t.Context(), b, "acme", time.Now().Add(sweepEvery/2)), "it was swept just now")
	later := time.Now().Add(sweepAge + sweepEvery)
	require.Equal(t, 2, o.sweep(t.Context(), b, "acme", later))
	chunks, named := p.versions("acme")
	require.ElementsMatch(t, append(named, "foreign"), chunks)
	require.Len(t, p.object("acme", "kept", ""), 300_000)
}

// Puts of one object at the same time leave one version of it, and no chunks of the others. Who reads meanwhile reads
// one of them whole. A condition holds when the object is stored, not only when the put begins.
func TestObjectsAtTheSameTime(t *testing.T) {
	t.Parallel()
	p := start(t)
	var wg sync.WaitGroup
	var created, changed atomic.Int64
	for i := range 24 {
		wg.Go(func() {
			data := bytes.Repeat([]byte{byte(i)}, 200_000)
			for {
				_, err := p.inBucket("acme", "put", data, free, putting("k", always)...)
				if err == nil {
					break
				}
				require.ErrorContains(t, err, "(10058)")
			}
			if i%8 == 0 {
				_, _ = p.inBucket("acme", "delete", nil, free, "k")
			}
			if got := p.object("acme", "k", ""); got != nil {
				require.Equal(t, bytes.Repeat(got[:1], 200_000), got)
			}
			a, err := p.inBucket("acme", "put", []byte{1}, free, putting("once", []string{"", "*", "", "", ""})...)
			if err == nil && len(a.Texts) > 0 {
				created.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, created.Load())
	first, err := p.inBucket("acme", "head", nil, free, "once")
	require.NoError(t, err)
	var d described
	require.NoError(t, json.Unmarshal([]byte(first.Texts[0]), &d))
	for i := range 8 {
		wg.Go(func() {
			a, err := p.inBucket("acme", "put", []byte{2, byte(i)}, free,
				putting("once", []string{"=" + d.Etag, "", "", "", ""})...)
			if err == nil && len(a.Texts) > 0 {
				changed.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, changed.Load(), "one put replaces the version that it names")
	chunks, named := p.versions("acme")
	require.Equal(t, named, chunks)
}

// Thousands of calls at once have their answers, and other owners theirs.
func TestManyCallsOfObjectsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.putObject("beta", "k", []byte("beta's"))
	var wg sync.WaitGroup
	var failures sync.Map
	for i := range 2000 {
		wg.Go(func() {
			var err error
			if i%10 == 0 {
				_, err = p.inBucket("acme", "put", []byte("v"), free, putting(fmt.Sprint("k", i%100), always)...)
			} else {
				_, err = p.inBucket("acme", "get", nil, free, append([]string{fmt.Sprint("k", i%100), ""}, always...)...)
			}
			if err != nil {
				failures.Store(err.Error(), true)
			}
		})
	}
	require.Equal(t, "beta's", string(p.object("beta", "k", "")))
	wg.Wait()
	require.Equal(t, "beta's", string(p.object("beta", "k", "")))
	p.catalog.SetPolicy("acme", workers.Policy{BindingCalls: 100_000})
	p.putObject("acme", "k0", []byte("last"))
	require.Equal(t, "last", string(p.object("acme", "k0", "")))
	for text := range failures.Range {
		require.Contains(t, text, "(10058)", "only puts of one object that others put at the same time fail")
	}
}

// The pages of a list together are what a simple list is.
func TestPagesOfObjects(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.StringMatching(`[a-c/]{1,6}`), rapid.ID[string]).Draw(t, "keys")
		slices.Sort(keys)
		l := listing{prefix: rapid.StringMatching(`[a-c/]{0,2}`).Draw(t, "prefix"),
			delimiter: rapid.SampledFrom([]string{"", "/", "b", "ab"}).Draw(t, "delimiter"), limit: rapid.IntRange(1, 4).
					Draw(t, "limit")}
		l.after = rapid.StringMatching(`[a-c/]{0,3}`).Draw(t, "startAfter")
		var all []listed
		var wantKeys, wantPrefixes []string
		for _, k := range keys {
			if !strings.HasPrefix(k, l.prefix) {
				continue
			}
			all = append(all, listed{name: k})
			group := l.group(k)
			switch {
			case k <= l.after:
			case group == "":
				wantKeys = append(wantKeys, k)
			case !slices.Contains(wantPrefixes, group):
				wantPrefixes = append(wantPrefixes, group)
			}
		}
		var gotKeys, gotPrefixes []string
		for more := true; more; {
			var k, g []string
			k, g, l.shown, more = l.page(all)
			require.LessOrEqual(t, len(k)+len(g), l.limit)
			gotKeys, gotPrefixes, l.after = append(gotKeys, k...), append(gotPrefixes, g...), l.shown
		}
		require.Equal(t, wantKeys, gotKeys)
		require.Equal(t, wantPrefixes, gotPrefixes)
	})
}

// A list goes on after a key that is gone, in another process too, and takes no cursor that none has made.
func TestListsOfObjects(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	p, other := open(t, nc), open(t, nc)
	for i := range 30 {
		p.putObject("acme", fmt.Sprintf("k%02d", i), []byte("v"))
	}
	list := func(p process, cursor, prefix string) (lifecycle.Answer, error) {
		return p.inBucket("acme", "list", nil, free, prefix, "10", cursor, "", "", "", "")
	}
	a, err := list(p, "", "k")
	require.NoError(t, err)
	require.Len(t, a.Texts, 12)
	_, err = p.inBucket("acme", "delete", nil, free, "k09", "k10", "k11")
	require.NoError(t, err)
	b, err := list(other, a.Texts[0], "k")
	require.NoError(t, err)
	require.Contains(t, b.Texts[2], `"key":"k12"`)
	for _, cursor := range []string{"!!!", "AAAA", a.Texts[0] + "A",
		base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("x", 40)))} {
		_, err = list(p, cursor, "k")
		require.ErrorContains(t, err, "list: Invalid cursor")
	}
	_, err = list(p, a.Texts[0], "k0")
	require.ErrorContains(t, err, "list: Invalid cursor")
	_, err = p.inBucket("acme", "list", nil, func(n int) error { return fmt.Errorf("%d bytes are too many", n) }, "", "",
		"", "", "", "", "")
	require.ErrorContains(t, err, "429")
}

// Go checks what JavaScript has checked, too, and holds what it reads.
func TestArgumentsOfObjectsAreChecked(t *testing.T) {
	t.Parallel()
	p := start(t)
	for _, c := range []struct {
		method string
		texts  []string
		want   string
	}{
		{"head", nil, "0 arguments, not 1"},
		{"get", []string{"k"}, "1 arguments, not 7"},
		{"put", []string{"k"}, "1 arguments"},
		{"put", append(putting("k", always), "name without value"), "15 arguments"},
		{"put", append([]string{"k", "crc", "00"}, putting("", always)[3:]...), `no checksum "crc"`},
		{"put", putting("k", []string{"h\"a", "", "", "", ""}), ""},
		{"put", putting("k", []string{"ha", "", "", "", ""}), "without quotes"},
		{"put", putting("k", []string{"", "", "soon", "", ""}), "is no number"},
		{"put", append(putting("k", always), "name", strings.Repeat("v", maxObjectMetadata)), "(10012)"},
		{"delete", make([]string, maxDeleted+1), "at most 1000 keys"},
		{"list", []string{"", "1001", "", "", "", "", ""}, "(10022)"},
		{"list", []string{"", "x", "", "", "", "", ""}, "(10022)"},
		{"purge", nil, `no method "purge"`},
	} {
		_, err := p.inBucket("acme", c.method, nil, free, c.texts...)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, "%s %.40q", c.method, c.texts)
		}
	}
	p.putObject("acme", "k", large(1000))
	_, err := p.inBucket("acme", "get", nil, func(n int) error { return fmt.Errorf("%d bytes are too many", n) },
		append([]string{"k", "10,20"}, always...)...)
	require.ErrorContains(t, err, "get: 20 bytes are too many")
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{"", "*", "=x", `h"a", W/"b"`, `h"`, "h*", "h,,,", `hW/`, "h\"a\"b"} {
		f.Add(s, "5")
	}
	f.Add("", "hSun, 09 Sep 2001 01:46:40 GMT")
	f.Fuzz(func(t *testing.T, etag, at string) {
		c, err := readCondition([]string{etag, etag, at, at, "1"})
		if err == nil {
			c.met(nil)
			c.met(&version{})
		}
	})
}

func FuzzRange(f *testing.F) {
	for _, s := range []string{"", ",", "1,2", "-5", "hbytes=0-1", "hbytes=-1", "hbytes=5-", "h",
		"18446744073709551615,18446744073709551615", "hbytes=0-18446744073709551615"} {
		f.Add(s, uint64(10))
	}
	f.Fuzz(func(t *testing.T, text string, size uint64) {
		part, err := readRange(text, size)
		if err == nil && (part.Offset > size || part.Length > size-part.Offset) {
			t.Fatalf("%q of %d: %v", text, size, part)
		}
	})
}

func BenchmarkObjects(b *testing.B) {
	nc := natstest.Connect(b, natstest.Start(b))
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	o := newObjects(backend{nc, js, Config{Replicas: 1},
		func(string) workers.Policy { return workers.Policy{ObjectBytes: 1 << 30} }, nil}, &lists{})
	call := func(m method, body []byte, texts ...string) {
		_, err := m(b.Context(), &lifecycle.Call{Owner: "acme", Binding: workers.Binding{Value: "files"}, Texts: texts,
			Body: body, Wrote: &atomic.Bool{}, Hold: free})
		require.NoError(b, err)
	}
	for _, size := range []int{1 << 10, 1 << 20, 25 << 20} {
		data := large(size)
		b.Run("put"+strconv.Itoa(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				call(o.put, data, putting("k", always)...)
			}
		})
		b.Run("get"+strconv.Itoa(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				call(o.get, nil, append([]string{"k", ""}, always...)...)
			}
		})
		b.Run("last"+strconv.Itoa(size), func(b *testing.B) {
			for b.Loop() {
				call(o.get, nil, append([]string{"k", "-10"}, always...)...)
			}
		})
	}
}
