package cli

import (
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// nextText is the next tick of a schedule.
func nextText(s control.Schedule) string {
	if s.Paused {
		return "paused"
	}
	return stampedOrNone(s.Next)
}

func stampedOrNone(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return stamped(t)
}

// scheduleText describes a schedule in a few words.
func scheduleText(s workers.Schedule) string {
	text := s.Cron
	if s.TimeZone != "" {
		text += " " + s.TimeZone
	}
	return fmt.Sprintf("%s, overlap %s, misfire %s", text, s.Overlap.OrDefault(), s.Misfire.OrDefault())
}
