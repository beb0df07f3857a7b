package flow

import (
	"fmt"
	"time"
)

// Rate is a number per second, with a digit behind the point when it is small.
func Rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// Milliseconds is a duration of so many milliseconds, for people; "-" for nil.
func Milliseconds(ms *float64) string {
	switch {
	case ms == nil:
		return "-"
	case *ms < 1:
		return fmt.Sprintf("%.0f µs", *ms*1000)
	case *ms < 10:
		return fmt.Sprintf("%.1f ms", *ms)
	case *ms < 10_000:
		return fmt.Sprintf("%.0f ms", *ms)
	}
	return fmt.Sprintf("%.0f s", *ms/1000)
}

// Age is a time of so many seconds, for people; "-" for nil.
func Age(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return time.Duration(*seconds * float64(time.Second)).Round(time.Second).String()
}
