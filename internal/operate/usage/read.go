package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Store reads the usage of a fleet. Several goroutines may use it.
type Store struct {
	js  jetstream.JetStream
	now func() time.Time
}

// NewStore returns the Store of a fleet. It asks NATS for nothing.
func NewStore(js jetstream.JetStream) *Store { return &Store{js, time.Now} }

// span is a time, From included and To not.
type span struct{ From, To time.Time }

// found are stored tables, by their times and shards.
type found struct {
	days  map[time.Time]map[string]*table
	hours map[time.Time]*hourOf
}

// hourOf is what there is of an hour: sums by shard, and parts. A part of a shard that has a sum is in it.
type hourOf struct {
	sums  map[string]*table
	parts map[partOf]*table
}

type partOf struct{ shard, process string }

func newFound() *found {
	return &found{days: map[time.Time]map[string]*table{}, hours: map[time.Time]*hourOf{}}
}

// whole reports whether the sum of a day is there, and the day is in the span.
func (f *found) whole(day time.Time, in span) bool {
	return f.days[day][wholeDay] != nil && in.hasDay(day)
}

// aDay is a day in UTC.
const aDay = 24 * time.Hour

// hasDay reports whether all of a day is in the span.
func (in span) hasDay(day time.Time) bool { return !day.Before(in.From) && !day.Add(aDay).After(in.To) }

// days are the days of which something is in the span, and is kept for so long.
func (in span) days(now time.Time, kept time.Duration) (list []time.Time) {
	from, to := now.Add(-kept-aDay), now.Add(aDay)
	if in.From.After(from) {
		from = in.From
	}
	if in.To.Before(to) {
		to = in.To
	}
	for day := from.UTC().Truncate(aDay); day.Before(to); day = day.Add(aDay) {
		list = append(list, day)
	}
	return list
}

// mostFilters is how many subjects a scan names. One of more days looks at the keys of all days.
const mostFilters = 64

// read reads the tables of a shard, or of all ("*"), with a scan each for days, parts and hours. It reads hours only of
// days that are not whole, and with hours of all days and no sums of days. Parts come before hours: a part that is
// missing because it is added up is in the sum then.
func (s *Store) read(ctx context.Context, in span, shard string, hours bool) (*found, error) {
	f, now := newFound(), s.now()
	if !hours {
		// The key that says that a day is whole is written last. A scan that sees it has seen the sums of all shards.
		keys := patterns("day", in.days(now, daysKept), "."+shard)
		if shard != "*" {
			keys = append(keys, patterns("day", in.days(now, daysKept), "."+wholeDay)...)
		}
		if err := s.scan(ctx, keys, f, in); err != nil {
			return nil, err
		}
	}
	open := slices.DeleteFunc(in.days(now, hoursKept), func(day time.Time) bool { return f.whole(day, in) })
	for _, keys := range [][]string{patterns("part", open, ".*."+shard+".*"), patterns("hour", open, ".*."+shard)} {
		if err := s.scan(ctx, keys, f, in); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// patterns are the patterns of the keys of days.
func patterns(kind string, days []time.Time, rest string) (list []string) {
	if len(days) > mostFilters {
		return []string{kind + ".*" + rest}
	}
	for _, day := range days {
		list = append(list, kind+"."+day.Format(dayFormat)+rest)
	}
	return list
}

// scan reads the keys of some patterns, which do not overlap. It decodes those in the span only.
func (s *Store) scan(ctx context.Context, patterns []string, f *found, in span) error {
	if len(patterns) == 0 {
		return nil
	}
	prefix := "$KV." + Bucket + "."
	subjects := make([]string, len(patterns))
	for i, p := range patterns {
		subjects[i] = prefix + p
	}
	for m, err := range stored.ScanAny(ctx, s.js.Conn(), resources.BucketStream(Bucket), subjects) {
		if err != nil {
			return usageError(err)
		}
		if len(m.Data) == 0 { // a marker of what was removed
			continue
		}
		if err := f.put(strings.Split(strings.TrimPrefix(m.Subject, prefix), "."), m.Data, in); err != nil {
			return fmt.Errorf("%s: %w", m.Subject, err)
		}
	}
	return nil
}

// put notes the table of a key, if its time is in the span.
func (f *found) put(key []string, data []byte, in span) error {
	day, err := time.Parse(dayFormat, key[1])
	if err != nil {
		return err
	}
	t := &table{}
	if key[0] == "day" {
		if !in.hasDay(day) {
			return nil
		}
		if f.days[day] == nil {
			f.days[day] = map[string]*table{}
		}
		f.days[day][key[2]] = t
		return t.decode(data)
	}
	hour, err := time.Parse(dayFormat+hourFormat, key[1]+key[2])
	if err != nil || hour.Before(in.From.Truncate(time.Hour)) || !hour.Before(in.To) {
		return err
	}
	of := f.hours[hour]
	if of == nil {
		of = &hourOf{sums: map[string]*table{}, parts: map[partOf]*table{}}
		f.hours[hour] = of
	}
	if key[0] == "hour" {
		of.sums[key[3]] = t
	} else {
		of.parts[partOf{key[3], key[4]}] = t
	}
	return t.decode(data)
}

// Query chooses usage. Times are rounded down to hours.
type Query struct {
	Owner, Worker string // "" = all
	From, To      time.Time
	// ByOwner and ByWorker: a row for each. ByDay, ByHour: a row for each time. ByHour only has what is kept by the hour.
	ByOwner, ByWorker, ByDay, ByHour bool
}

// Row is what was used in some time.
type Row struct {
	Time   time.Time `json:"time,omitzero"` // beginning of the day or the hour, with ByDay or ByHour
	Owner  string    `json:"owner,omitempty"`
	Worker string    `json:"worker,omitempty"`
	Counts
}

// Read returns the usage that q chooses, in the order of time, owner and worker.
func (s *Store) Read(ctx context.Context, q Query) ([]Row, error) {
	shard := "*"
	if q.Owner != "" {
		shard = shardOf(q.Owner)
	}
	in := span{q.From.UTC().Truncate(time.Hour), q.To.UTC()}
	f, err := s.read(ctx, in, shard, q.ByHour)
	if err != nil {
		return nil, err
	}
	sums := map[Row]*Counts{}
	add := func(at time.Time, t *table) {
		for n, c := range t.rows {
			if key, ok := q.key(at, n); ok {
				if sums[key] == nil {
					sums[key] = &Counts{}
				}
				sums[key].Add(*c)
			}
		}
	}
	for day, of := range f.days {
		if !f.whole(day, in) {
			continue
		}
		for _, t := range of {
			add(day, t)
		}
	}
	for hour, of := range f.hours {
		if !q.ByHour && f.whole(hour.Truncate(aDay), in) {
			continue
		}
		for _, t := range of.sums {
			add(hour, t)
		}
		for key, t := range of.parts {
			if of.sums[key.shard] == nil {
				add(hour, t)
			}
		}
	}
	rows := make([]Row, 0, len(sums))
	for key, c := range sums {
		key.Counts = *c
		rows = append(rows, key)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Worker, b.Worker))
	})
	return rows, nil
}

// key is the row in which q counts a worker at a time. ok is false when q does not choose it.
func (q Query) key(at time.Time, n name) (key Row, ok bool) {
	if q.Owner != "" && n.Owner != q.Owner || q.Worker != "" && n.Worker != q.Worker {
		return key, false
	}
	if q.ByOwner || q.ByWorker {
		key.Owner = n.Owner
	}
	if q.ByWorker {
		key.Worker = n.Worker
	}
	switch {
	case q.ByHour:
		key.Time = at
	case q.ByDay:
		key.Time = at.Truncate(aDay)
	}
	return key, true
}
