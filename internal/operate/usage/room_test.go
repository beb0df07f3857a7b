package usage

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// busy is what a busy worker uses in an hour.
func busy(random *rand.Rand) Counts {
	return Counts{Attempts: random.Uint64N(1e4), CPUMicros: random.Uint64N(1e8), WallMicros: random.Uint64N(1e9),
		BytesIn: random.Uint64N(1e7), BytesOut: random.Uint64N(1e7)}
}

// 1000 owners with two busy workers and something stored each fit into the bucket, by all hours and days that are kept.
// So do 5000 that have something stored, and use nothing.
func TestManyOwnersFitTheBucket(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	size := func(owners, workers int) (n int) {
		t.Helper()
		all := map[string]*table{}
		for i := range owners {
			owner := fmt.Sprint("owner", i)
			s := shardOf(owner)
			if all[s] == nil {
				all[s] = &table{}
			}
			for w := range workers {
				all[s].add(name{owner, fmt.Sprint("worker", w)}, busy(random))
			}
			all[s].add(name{Owner: owner}, Counts{StoredByteHours: float64(random.Uint64N(1e9))})
		}
		for _, one := range all {
			data, err := one.sum().encode()
			require.NoError(t, err)
			n += len(data) + 100 // and its key
		}
		t.Logf("%d owners with %d workers: %d bytes", owners, workers, n)
		return n
	}
	const hours, days, parts = int(hoursKept / time.Hour), int(daysKept / aDay), 50 * 5 / 4
	require.Less(t, size(1000, 2)*(hours+days+parts), maxBytes/8*7)
	require.Less(t, size(5000, 0)*(hours+days), maxBytes/8*7)
	require.Less(t, size(1, ownerRows)*(hours+days), maxBytes/20, "one owner takes the room of all")
}

// A sum has rows for the workers of an owner that ran most, and counts all.
func TestSumsHaveTheWorkersThatRanMost(t *testing.T) {
	t.Parallel()
	var all table
	want := uint64(0)
	for i := range ownerRows {
		all.add(name{"acme", fmt.Sprint("w", i)}, Counts{Attempts: uint64(i)})
		want += uint64(i)
	}
	all.add(name{Owner: "acme"}, Counts{StoredByteHours: 7})
	s := all.sum()
	require.Len(t, s.rows, sumRows+2)
	require.InDelta(t, 7, s.rows[name{Owner: "acme"}].StoredByteHours, 0)
	require.NotNil(t, s.rows[name{"acme", fmt.Sprint("w", ownerRows-sumRows)}])
	got := uint64(0)
	for _, c := range s.rows {
		got += c.Attempts
	}
	require.Equal(t, want, got)
}

// A table that is longer than any that is written is refused before all of it is in memory.
func TestLongTablesAreRefused(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	w := gzip.NewWriter(&data)
	for range 2 * maxDecoded >> 10 {
		_, err := w.Write(bytes.Repeat([]byte(" "), 1<<10))
		require.NoError(t, err)
	}
	_, err := w.Write([]byte("[]"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorContains(t, new(table).decode(data.Bytes()), "more than")
}

// In a bucket that is much too small counting never stops: the oldest hours go, then the oldest days.
func TestOldestSumsMakeRoom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f := openFleet(t)
	p := f.process()
	stream, err := f.js.Stream(t.Context(), resources.BucketStream(Bucket))
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	cfg.MaxBytes = 256 << 10
	_, err = f.js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	begin, attempts := f.now, map[time.Time]uint64{}
	for range 12 * 24 {
		for i := range 32 {
			c := busy(random)
			p.used[name{fmt.Sprint("owner", i%4), fmt.Sprint("w", i)}] = c
			attempts[f.now.Truncate(aDay)] += c.Attempts
		}
		p.Write(t.Context())
		require.Empty(t, p.waiting)
		f.now = f.now.Add(time.Hour)
		require.NoError(t, p.Fold(t.Context()))
	}
	f.now = f.now.Add(2 * time.Hour)
	require.NoError(t, p.Fold(t.Context()))
	require.Empty(t, f.keys("hour."+begin.Format(dayFormat)+".>"))
	require.NotEmpty(t, f.keys("hour."+begin.Add(11*aDay).Format(dayFormat)+".>"))
	got := map[time.Time]uint64{}
	for _, r := range f.rows(Query{From: begin, To: f.now, ByDay: true}) {
		got[r.Time] = r.Attempts
	}
	for day, n := range attempts {
		require.Equal(t, n, got[day], day)
	}
	// Now not even the days fit.
	cfg.MaxBytes = 16 << 10
	_, err = f.js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, p.Fold(t.Context()))
	require.Empty(t, f.keys("day."+begin.Format(dayFormat)+".>"))
	require.NotEmpty(t, f.keys("day."+begin.Add(11*aDay).Format(dayFormat)+".>"))
	require.NoError(t, f.process().Fold(t.Context()), "a process that did not add up these days")
	require.Empty(t, f.keys("day."+begin.Format(dayFormat)+".>"))
}

// However long a time is asked for, it is read by at most three scans.
func TestLongTimesTakeFewScans(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	f := &fleet{js, time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC), t}
	p := f.process()
	begin := f.now
	p.used[name{"acme", "w"}] = Counts{Attempts: 3}
	p.Write(t.Context())
	f.now = f.now.Add(40 * aDay)
	for _, q := range []Query{
		{From: f.now.Add(-400 * aDay), To: f.now}, {Owner: "acme", From: f.now.Add(-400 * aDay), To: f.now},
		{From: f.now.Add(-400 * aDay), To: f.now, ByHour: true}, {Owner: "acme", From: begin, To: f.now},
		{From: time.Time{}, To: f.now.Add(1e5 * time.Hour)},
	} {
		seen, err := nc.SubscribeSync("$JS.API.CONSUMER.CREATE.>")
		require.NoError(t, err)
		require.NoError(t, nc.Flush())
		f.rows(q)
		require.NoError(t, nc.Flush())
		n, _, err := seen.Pending()
		require.NoError(t, err)
		require.Positive(t, n)
		require.LessOrEqual(t, n, 3)
		require.NoError(t, seen.Unsubscribe())
	}
}

// Who reads while hours and days are added up sees all that was counted, each time.
func TestReadsWhileHoursAreAddedUp(t *testing.T) {
	t.Parallel()
	f := openFleet(t)
	p := f.process()
	begin := f.now
	for range 30 {
		p.used[name{"acme", "w"}] = Counts{Attempts: 1}
		p.Write(t.Context())
		f.now = f.now.Add(time.Hour)
	}
	f.now = f.now.Add(2 * time.Hour)
	folded, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		defer cancel()
		if err := p.Fold(t.Context()); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	for n := 0; folded.Err() == nil || n == 0; n++ {
		require.EqualValues(t, 30, f.rows(Query{Owner: "acme", From: begin, To: f.now})[0].Attempts)
	}
}
