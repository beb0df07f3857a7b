package assetstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func newFile(data string) NewFile {
	return NewFile{Hash: assets.HashOf([]byte(data)), Data: []byte(data), Compress: true}
}

// Processes that store for one owner at the same time keep its bound together.
func TestOwnersBoundHoldsAcrossProcesses(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	const most = 10 * (FileCost + 100)
	var running sync.WaitGroup
	var mu sync.Mutex
	stored, full := 0, 0
	for p := range 4 {
		s := New(js, Config{})
		running.Go(func() {
			for i := range 8 {
				_, err := s.Add(t.Context(), "acme", []NewFile{newFile(fmt.Sprintf("%d %d %s", p, i, strings.Repeat("x", 96)))},
					most)
				var refused *FullError
				mu.Lock()
				switch {
				case err == nil:
					stored++
				case errors.As(err, &refused):
					full++
				default:
					t.Errorf("%v", err)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	require.Equal(t, []int{10, 22}, []int{stored, full})
	s := New(js, Config{})
	kv, err := s.bucket(t.Context())
	require.NoError(t, err)
	counted, err := countedOf(t.Context(), kv, "acme")
	require.NoError(t, err)
	u, _, err := usageOf(t.Context(), kv, "acme")
	require.NoError(t, err)
	require.Equal(t, counted, u.Bytes)
	_, err = s.Add(t.Context(), "beta", []NewFile{newFile("x")}, most)
	require.NoError(t, err, "another owner has a bound of its own")
}

// What is there is neither stored nor counted again, and what is swept is not counted any more.
func TestWhatAnOwnerStoresIsCounted(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	f := folder(t, map[string]string{"a.txt": "first", "b.txt": strings.Repeat("some text, ", 1000)})
	_, err := s.Upload(t.Context(), "acme", f)
	require.NoError(t, err)
	kv, err := s.bucket(t.Context())
	require.NoError(t, err)
	bytes := func() int64 {
		u, revision, err := usageOf(t.Context(), kv, "acme")
		require.NoError(t, err)
		require.NotZero(t, revision)
		counted, err := countedOf(t.Context(), kv, "acme")
		require.NoError(t, err)
		require.Equal(t, counted, u.Bytes)
		return u.Bytes
	}
	up, err := s.Add(t.Context(), "acme", []NewFile{newFile("first"), newFile("second"), newFile("second")}, 1<<20)
	require.NoError(t, err)
	require.Equal(t, Uploaded{1, 6}, up)
	before := bytes()
	_, err = s.Add(t.Context(), "acme", []NewFile{newFile("first"), newFile("second")}, 0)
	require.NoError(t, err, "nothing is stored")
	require.Equal(t, before, bytes())
	var full *FullError
	_, err = s.Add(t.Context(), "acme", []NewFile{newFile("third")}, before+FileCost)
	require.ErrorAs(t, err, &full)
	require.Equal(t, FullError{before, FileCost + 5, before + FileCost}, *full)
	missing, err := s.Missing(t.Context(), "acme", []string{newFile("third").Hash, newFile("second").Hash})
	require.NoError(t, err)
	require.Equal(t, []string{newFile("third").Hash}, missing)
	var wrong *WrongError
	_, err = s.Add(t.Context(), "acme", []NewFile{{Hash: newFile("third").Hash, Data: []byte("other")}}, 1<<20)
	require.ErrorAs(t, err, &wrong)

	require.NoError(t, s.Check(t.Context(), "acme", f.Hash))
	var gone *MissingError
	require.ErrorAs(t, s.Check(t.Context(), "beta", f.Hash), &gone)
	d, err := s.Begin(t.Context(), "acme")
	require.NoError(t, err)
	n, err := d.Sweep(t.Context(), []string{f.Hash})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, before-FileCost-6, bytes())
	n, err = d.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Zero(t, bytes())
	require.ErrorAs(t, s.Check(t.Context(), "acme", f.Hash), &gone, "also when the list was read before")

	// Parts whose file never came count until they are deleted.
	require.NoError(t, s.charge(t.Context(), "acme", 1<<20, -1))
	_, err = kv.Put(t.Context(), partKey("acme", newFile("cut").Hash, assets.Plain, 0), []byte("c"))
	require.NoError(t, err)
	parts := func() int {
		n := 0
		require.NoError(t, eachOf(t.Context(), kv, "acme.*.*.*", func(jetstream.KeyValueEntry) error { n++; return nil }))
		return n
	}
	_, err = d.Sweep(t.Context(), nil)
	require.NoError(t, err)
	u, _, err := usageOf(t.Context(), kv, "acme")
	require.NoError(t, err)
	require.EqualValues(t, assets.PartBytes, u.Bytes)
	require.Equal(t, 1, parts(), "its file may still come")
	s.young = 0
	_, err = d.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, bytes())
	require.Zero(t, parts())
}
