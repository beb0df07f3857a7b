package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// maxDuration is the longest duration in a manifest. Most keys have a lower bound of their own.
const maxDuration = 365 * 24 * time.Hour

// durationUnits are those of Buntime.
var durationUnits = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
	"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour,
}

var durationText = regexp.MustCompile(`^([0-9]{1,15})(ms|s|m|h|d|w|y)$`)

// How a duration is written, and more about it.
const (
	durationShape = `a duration like "30s"`
	durationMore  = "its units are ms, s, m, h, d, w, y, and it is at most a year"
)

// parseDuration reads a whole number with a unit.
func parseDuration(s string) (workers.Millis, error) {
	m := durationText.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("it is no duration")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := durationUnits[m[2]]
	if err != nil || n > int64(maxDuration/unit) {
		return 0, fmt.Errorf("it is longer than a year")
	}
	return workers.Millis(time.Duration(n) * unit), nil
}

// Duration reads a number of milliseconds, or a whole number with a unit. false = it is neither, or longer than a year.
func Duration(s string) (workers.Millis, bool) {
	if _, err := strconv.Atoi(s); err == nil {
		s += "ms"
	}
	d, err := parseDuration(s)
	return d, err == nil
}

// seconds is a duration that is a number of seconds, or a text with a unit: as Buntime has it. It may be 0.
type seconds struct {
	workers.Millis
	given bool
}
