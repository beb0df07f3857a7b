package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Minute is what a fleet did in one minute, or the workers of an owner.
type Minute struct {
	At     time.Time // when it began
	Events uint64    // attempts that ended
	Failed uint64    // attempts that failed
	P50    *float64  // of attempts, milliseconds; nil = none ended
	P99    *float64
}

// Hour is the last hour of a fleet, or of an owner in it, by the minute. Processes that ended in it are not in it.
type Hour struct {
	Minutes []Minute // the oldest first, without gaps
	Missing []string // nodes that do not answer
}

// TakeHour asks all processes, for at most a second. owner "" = all owners.
func TakeHour(ctx context.Context, client *control.Client, owner string) (h Hour, err error) {
	var flows []control.Flow
	var missing []control.Member
	if owner == "" {
		flows, missing, err = control.AskFlows(ctx, client, control.AskFlow{Minutes: true})
	} else {
		var list []control.WorkersFlow
		list, missing, err = control.AskWorkersFlows(ctx, client, control.AskWorkersFlow{Owner: owner, Minutes: true})
		for _, one := range list {
			flows = append(flows, control.Flow{Duration: one.Duration, Minutes: one.Minutes})
		}
	}
	if errors.Is(err, nats.ErrNoResponders) {
		return h, ErrNoFleet
	}
	if err != nil {
		return h, fmt.Errorf("ask the processes: %w", err)
	}
	h.Minutes = HourOf(flows)
	for _, m := range missing {
		h.Missing = append(h.Missing, m.Node)
	}
	return h, nil
}

// HourOf adds up the minutes of processes, at most control.KeptMinutes up to the newest. Each process has its own
// clock: minutes of the same name are taken for the same.
func HourOf(flows []control.Flow) []Minute {
	type sum struct {
		ended, failed uint64
		duration      control.Histogram
	}
	var first, last time.Time
	sums := map[int64]*sum{}
	for _, f := range flows {
		for _, m := range f.Minutes {
			at := m.At.UTC().Truncate(time.Minute)
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
			s := sums[at.Unix()]
			if s == nil {
				s = &sum{}
				sums[at.Unix()] = s
			}
			s.ended, s.failed = s.ended+m.Ended, s.failed+m.Failed
			if len(m.Duration) > 0 {
				s.duration = s.duration.Add(control.Histogram{Count: m.Ended, Bounds: f.Duration.Bounds, Buckets: m.Duration})
			}
		}
	}
	if oldest := last.Add(-(control.KeptMinutes - 1) * time.Minute); first.Before(oldest) {
		first = oldest
	}
	list := []Minute{}
	for at := first; !last.IsZero() && !at.After(last); at = at.Add(time.Minute) {
		one := Minute{At: at}
		if s := sums[at.Unix()]; s != nil {
			one.Events, one.Failed = s.ended, s.failed
			one.P50, one.P99 = quantile(s.duration, 0.5), quantile(s.duration, 0.99)
		}
		list = append(list, one)
	}
	return list
}
