package workers

import (
	"fmt"
	"time"
)

// Millis is a duration. In JSON it is a whole number of milliseconds.
type Millis time.Duration

// Duration is m as a time.Duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) }

func (m Millis) ms() int64 { return time.Duration(m).Milliseconds() }

// MarshalJSON writes the milliseconds as a number.
func (m Millis) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%d", m.ms()), nil }

// UnmarshalJSON reads a whole number of milliseconds, 0 or more.
func (m *Millis) UnmarshalJSON(b []byte) error {
	const most = 365 * int64(24*time.Hour/time.Millisecond)
	var n int64
	if _, err := fmt.Sscanf(string(b), "%d", &n); err != nil || n < 0 || n > most || fmt.Sprint(n) != string(b) {
		return fmt.Errorf("%s is not a whole number of milliseconds", b)
	}
	*m = Millis(time.Duration(n) * time.Millisecond)
	return nil
}
