package usage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// fleet has processes that count, with one clock.
type fleet struct {
	js  jetstream.JetStream
	now time.Time
	t   *testing.T
}

func openFleet(t *testing.T) *fleet {
	t.Helper()
	js, err := jetstream.New(natstest.Connect(t, natstest.Start(t)))
	require.NoError(t, err)
	return &fleet{js, time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC), t}
}

// process is one that uses what its map says, until it is taken.
type process struct {
	*Ledger
	used map[name]Counts
}

func (f *fleet) process() *process {
	f.t.Helper()
	p := &process{used: map[name]Counts{}}
	l, err := Open(f.t.Context(), f.js, Config{
		Now: func() time.Time { return f.now }, Log: zerolog.Nop(),
		Take: func(each func(owner, worker string, c Counts)) {
			for n, c := range p.used {
				each(n.Owner, n.Worker, c)
			}
			clear(p.used)
		},
		Stored: func(context.Context) (map[string]uint64, error) { return map[string]uint64{"acme": 1000}, nil },
	})
	require.NoError(f.t, err)
	p.Ledger = l
	return p
}

func (f *fleet) store() *Store { return &Store{f.js, func() time.Time { return f.now }} }

func (f *fleet) rows(q Query) []Row {
	f.t.Helper()
	rows, err := f.store().Read(f.t.Context(), q)
	require.NoError(f.t, err)
	return rows
}

func (f *fleet) keys(pattern string) []string {
	f.t.Helper()
	kv, err := f.js.KeyValue(f.t.Context(), Bucket)
	require.NoError(f.t, err)
	list, err := kv.ListKeysFiltered(f.t.Context(), pattern)
	require.NoError(f.t, err)
	var all []string
	for k := range list.Keys() {
		all = append(all, k)
	}
	return all
}

// Over three days, with processes that come and go and fold at random, sums are those of what was counted, by owner,
// worker, day and hour, before, while and after hours and days are added up.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f := openFleet(t)
	all := []*process{f.process(), f.process()}
	want, byDay := map[name]Counts{}, map[string]uint64{}
	begin := f.now
	check := func() {
		t.Helper()
		got := map[name]Counts{}
		for _, r := range f.rows(Query{From: begin, To: f.now.Add(time.Hour), ByOwner: true, ByWorker: true}) {
			r.StoredByteHours = 0
			if r.Worker != "" {
				got[name{r.Owner, r.Worker}] = r.Counts
			}
		}
		require.Equal(t, want, got)
	}
	for range 3 * 24 * 4 {
		f.now = f.now.Add(15 * time.Minute)
		if random.IntN(20) == 0 {
			all[random.IntN(2)] = f.process() // all of the one before is written
		}
		for _, p := range all {
			n := name{fmt.Sprintf("owner%d", random.IntN(9)), fmt.Sprintf("w%d", random.IntN(3))}
			c := Counts{Attempts: 1 + random.Uint64N(9), CPUMicros: random.Uint64N(1e6), WallMicros: 5, BytesIn: 2, BytesOut: 3}
			p.used[n] = c
			sum := want[n]
			sum.Add(c)
			want[n] = sum
			byDay[f.now.Format(dayFormat)] += c.Attempts
			p.Write(t.Context())
		}
		if random.IntN(6) == 0 {
			require.NoError(t, all[random.IntN(2)].Fold(t.Context()))
		}
		if random.IntN(40) == 0 {
			check()
		}
	}
	check()
	f.now = f.now.Add(2 * time.Hour)
	for _, p := range all {
		require.NoError(t, p.Fold(t.Context()))
	}
	check()
	require.Empty(t, f.keys("part.>"))
	require.NotEmpty(t, f.keys("day.*.all"))
	got := map[string]uint64{}
	for _, r := range f.rows(Query{From: begin, To: f.now, ByDay: true}) {
		got[r.Time.Format(dayFormat)] = r.Attempts
	}
	require.Equal(t, byDay, got)
	hourly := uint64(0)
	for _, r := range f.rows(Query{Owner: "owner3", From: begin, To: f.now, ByHour: true, ByOwner: true}) {
		require.Equal(t, "owner3", r.Owner)
		hourly += r.Attempts
	}
	sum := uint64(0)
	for n, c := range want {
		if n.Owner == "owner3" {
			sum += c.Attempts
		}
	}
	require.Equal(t, sum, hourly)
	part := f.rows(Query{Worker: "w1", Owner: "owner3", From: begin, To: f.now})
	require.Len(t, part, 1)
	require.Equal(t, want[name{"owner3", "w1"}].Attempts, part[0].Attempts)
	stored := f.rows(Query{Owner: "acme", From: begin, To: begin.Add(48 * time.Hour)})
	require.Len(t, stored, 1)
	require.InDelta(t, 48_000, stored[0].StoredByteHours, 1)
}

// What cannot be written is not lost: it is written later, also in another hour.
func TestUsageWaitsForItsBucket(t *testing.T) {
	t.Parallel()
	f := openFleet(t)
	p := f.process()
	use := func(n uint64) { p.used[name{"acme", "w"}] = Counts{Attempts: n} }
	use(1)
	p.Write(t.Context())
	require.NoError(t, f.js.DeleteKeyValue(t.Context(), Bucket))
	use(2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.Write(ctx)
	f.now = f.now.Add(time.Hour)
	p.Write(ctx)
	f.process() // makes the bucket again; what it had is gone
	use(4)
	p.Write(t.Context())
	rows := f.rows(Query{From: f.now.Add(-24 * time.Hour), To: f.now.Add(time.Hour), ByHour: true})
	require.Len(t, rows, 1)
	require.Equal(t, uint64(6), rows[0].Attempts)
	require.Equal(t, f.now, rows[0].Time)
}

// The rows of a table are bounded, and nothing is lost of the sums.
func TestTablesAreBounded(t *testing.T) {
	t.Parallel()
	var one, many table
	for i := range 10_000 {
		one.add(name{"acme", fmt.Sprint("w", i)}, Counts{Attempts: 1})
		many.add(name{fmt.Sprint("owner", i), "w"}, Counts{Attempts: 1})
	}
	require.Len(t, one.rows, ownerRows+1)
	require.EqualValues(t, 10_000-ownerRows, one.rows[name{"acme", Others}].Attempts)
	require.Positive(t, many.rows[name{Others, Others}].Attempts)
	for _, of := range []*table{&one, &many} {
		sum, again := Counts{}, &table{}
		data, err := of.encode()
		require.NoError(t, err)
		require.Less(t, len(data), 256<<10)
		require.NoError(t, again.decode(data))
		for _, c := range again.rows {
			sum.Add(*c)
		}
		require.EqualValues(t, 10_000, sum.Attempts)
	}
}

// Whatever is stored is read or refused, and what was read can be stored again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`[{"o":"acme","w":"w","attempts":1}]`))
	f.Add([]byte(`{}`))
	var one table
	one.add(name{"acme", "w"}, Counts{Attempts: 1})
	packed, err := one.encode()
	require.NoError(f, err)
	f.Add(packed)
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b table
		if a.decode(data) != nil && a.parse(data) != nil {
			return
		}
		text, err := a.encode()
		if err != nil {
			return // a sum that no number has
		}
		require.NoError(t, b.decode(text))
		require.Len(t, b.rows, len(a.rows))
	})
}
