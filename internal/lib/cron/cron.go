// Package cron computes when the ticks of a schedule are. It has no clock and no goroutine.
package cron

import (
	"fmt"
	"strings"
	"time"

	spec "github.com/netresearch/go-cron"
)

// Schedule is a parsed expression in its time zone. It never changes.
type Schedule struct {
	every time.Duration      // of @every, else 0
	spec  *spec.SpecSchedule // in wall-clock time, as if it were UTC
	free  bool               // ticks in every hour: changes of the clock make no difference
	zone  *time.Location
}

// minEvery and maxEvery bound @every.
const (
	minEvery = time.Second
	maxEvery = 366 * 24 * time.Hour
)

// Parse reads an expression and the name of a time zone, "" for UTC. The error says which of them is wrong, and how.
//
// An expression has 5 fields (minute, hour, day of month, month, day of week), or 6 with the second in front. A field
// may have names of months and days, lists, ranges and steps. When both day fields are restricted, a day that matches
// either is enough. Other expressions are @every DURATION, @hourly, @daily, @midnight, @weekly, @monthly, @yearly and
// @annually. The ticks of @every are at multiples of the duration since 1970; the time of the deploy makes no
// difference.
func Parse(expression, zone string) (*Schedule, error) {
	s := &Schedule{zone: time.UTC}
	if zone != "" {
		loc, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			return nil, fmt.Errorf("timeZone is %.70q: it is a name of the IANA time zone database, like Europe/Berlin", zone)
		}
		s.zone = loc
	}
	if rest, ok := strings.CutPrefix(expression, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(rest))
		if err != nil || d < minEvery || d > maxEvery || d%time.Second != 0 {
			return nil, fmt.Errorf("cron is %.70q: @every is followed by a duration of whole seconds, 1s to %s", expression, maxEvery)
		}
		s.every = d
		return s, nil
	}
	if strings.Contains(expression, "TZ=") {
		return nil, fmt.Errorf("cron is %.70q: the time zone belongs in timeZone", expression)
	}
	if err := refuse(expression); err != nil {
		return nil, err
	}
	parser, err :=
		spec.TryNewParser(
			spec.SecondOptional | spec.Minute | spec.Hour | spec.Dom | spec.Month | spec.Dow | spec.Descriptor | spec.DowOrDom)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("cron is %.70q: %w", expression, err)
	}
	fields, ok := parsed.(*spec.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron is %.70q: it has 5 or 6 fields, or is @every DURATION, "+
			"@hourly, @daily, @weekly, @monthly or @yearly", expression)
	}
	const allHours = 1<<24 - 1
	s.free = fields.Hour&allHours == allHours
	s.spec = fields
	s.spec.Location = time.UTC
	if s.spec.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron is %.70q: there is no such day", expression)
	}
	return s, nil
}

// Next is the first tick after t, in whole seconds; the zero time if there is none for years.
//
// When clocks go forward, all ticks of the skipped hour become one tick directly after it. When clocks go back, each
// time of the clock ticks once, the first time. Expressions that tick in every hour are not affected.
func (s *Schedule) Next(t time.Time) time.Time {
	t = t.Truncate(time.Second)
	if s.every > 0 {
		seconds := int64(s.every / time.Second)
		return time.Unix((t.Unix()/seconds+1)*seconds, 0).UTC()
	}
	if s.free {
		return s.nextFree(t)
	}
	for wall := asUTC(t.In(s.zone)); ; {
		if wall = s.spec.Next(wall); wall.IsZero() {
			return wall
		}
		if tick := instant(wall, s.zone); tick.After(t) {
			return tick
		}
	}
}

// nextFree goes from change to change of the clock. Between two changes, wall-clock time is linear.
func (s *Schedule) nextFree(t time.Time) time.Time {
	for {
		local := t.In(s.zone)
		_, offset := local.Zone()
		_, end := local.ZoneBounds()
		wall := s.spec.Next(asUTC(local))
		if wall.IsZero() {
			return wall
		}
		tick := wall.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || tick.Before(end) {
			return tick
		}
		// The change may itself be a tick.
		t = end.In(s.zone)
		if s.spec.Next(asUTC(t).Add(-time.Second)).Equal(asUTC(t)) {
			return t.UTC()
		}
	}
}

// asUTC is the wall-clock time of t as if it were UTC, which has no changes of the clock.
func asUTC(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// instant is when the clocks of a zone show wall: the first time if they show it twice, the end of the gap if they
// never show it.
func instant(wall time.Time, zone *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	start, end := t.ZoneBounds()
	switch shown := asUTC(t); {
	case shown.After(wall):
		return start.UTC()
	case shown.Before(wall):
		return end.UTC()
	}
	if !start.IsZero() {
		_, before := start.Add(-time.Second).Zone()
		if earlier := wall.Add(-time.Duration(before) * time.Second); earlier.Before(start) {
			return earlier
		}
	}
	return t.UTC()
}

// Missed are the latest ticks between two times, at most most of them, oldest first. The time between the two does not
// affect its cost.
func (s *Schedule) Missed(after, until time.Time, most int) []time.Time {
	for back := time.Duration(most) * time.Second; ; back *= 2 {
		from := until.Add(-back)
		if !from.After(after) {
			from = after
		}
		ticks := s.between(from, until, most)
		if len(ticks) >= most || from.Equal(after) {
			return ticks
		}
	}
}

// between are the latest ticks in a window, at most most of them.
func (s *Schedule) between(after, until time.Time, most int) []time.Time {
	var ticks []time.Time
	for t := s.Next(after); !t.IsZero() && !t.After(until); t = s.Next(t) {
		ticks = append(ticks, t)
	}
	return ticks[max(0, len(ticks)-most):]
}
