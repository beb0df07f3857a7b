package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers by which a publisher delays an event (docs/reference/wire.md, "Delayed events").
const (
	HeaderDeliverAt    = "Deliver-At"    // RFC 3339: run at this time
	HeaderDeliverAfter = "Deliver-After" // a Go duration, or seconds: run this long after the event was stored
)

// MaxDelay is the longest delay of an event.
const MaxDelay = 366 * 24 * time.Hour

// ParseDeliverAt reads a Deliver-At. A time in the past means now.
func ParseDeliverAt(value string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.60q: it is a time in RFC 3339, like 2026-01-02T15:04:05.123Z", value)
	}
	return at, nil
}

// ParseDeliverAfter reads a Deliver-After. "90", "1.5" and "2e3" are seconds; "90s" and "1h30m" are Go durations.
func ParseDeliverAfter(value string) (time.Duration, error) {
	after, err := time.ParseDuration(value)
	if err != nil {
		// Go's own numbers may have hexadecimal digits and underscores: these may not.
		if seconds, err2 := strconv.ParseFloat(value, 64); err2 == nil && !strings.ContainsAny(value, "xX_pP") &&
			seconds <= MaxDelay.Seconds() {
			after, err = time.Duration(max(-1, seconds)*float64(time.Second)), nil
		}
	}
	if err != nil || after < 0 || after > MaxDelay {
		return 0, fmt.Errorf("%.60q: it is a duration like 90s or 1h30m, or a number of seconds, 0 to %d", value, int64(MaxDelay.Seconds()))
	}
	return after, nil
}

// delay sets DeliverAt from the values of the headers. "" is a header that is missing.
func (e *Event) delay(at, after string, p *problem) {
	if at == "" && after == "" || p.failure != nil {
		return
	}
	if at != "" && after != "" {
		p.add("headers %s and %s: an event has one of them", HeaderDeliverAt, HeaderDeliverAfter)
		return
	}
	if at != "" {
		t, err := ParseDeliverAt(at)
		if err == nil && t.Sub(e.Stored) > MaxDelay {
			err = fmt.Errorf("%.60q: it is at most %d days after the event is stored", at, MaxDelay/(24*time.Hour))
		}
		if err != nil {
			p.add("header %s %v", HeaderDeliverAt, err)
			return
		}
		e.DeliverAt = t
	} else {
		d, err := ParseDeliverAfter(after)
		if err != nil {
			p.add("header %s %v", HeaderDeliverAfter, err)
			return
		}
		e.DeliverAt = e.Stored.Add(d)
	}
	if !e.DeliverAt.After(e.Stored) {
		e.DeliverAt = time.Time{} // now
	}
	if e.Parts != nil && e.Parts.Live && !e.DeliverAt.IsZero() {
		p.add("header %s %s: a body that comes while the event runs is for an event that runs at once, not for a delayed one",
			HeaderBodyParts, LiveParts)
	}
	if e.Parts != nil && e.DeliverAt.Sub(e.Stored) > MaxPartsDelay {
		p.add("header %s: a body in parts is kept for a day, so its event is delayed by at most %s", HeaderBodyID, MaxPartsDelay)
	}
}

// MaxPartsDelay is the longest delay of an event with a body in parts.
const MaxPartsDelay = 12 * time.Hour
