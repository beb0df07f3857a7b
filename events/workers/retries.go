package workers

import (
	"fmt"
	"time"
)

// Retries says how failed events of a worker run again. Zero and nil fields mean the default.
type Retries struct {
	MaxAttempts int      `json:"maxAttempts,omitempty"` // runs in total; 1 = no retry
	Initial     Millis   `json:"initialMs,omitempty"`   // delay before the second run
	Factor      float64  `json:"factor,omitempty"`      // each further delay is longer by this factor
	Max         Millis   `json:"maxMs,omitempty"`       // no delay is longer
	Jitter      *float64 `json:"jitter,omitempty"`      // each delay is random within this fraction of it, up and down
	Fetch       bool     `json:"fetch,omitempty"`       // retry fetch events too; by default only task and scheduled
}

// DefaultRetries are the retries of a worker whose manifest has none.
var DefaultRetries = Retries{
	MaxAttempts: 5, Initial: Millis(time.Second), Factor: 2, Max: Millis(time.Minute), Jitter: new(0.2),
}

// OrDefault sets the fields that are zero.
func (r Retries) OrDefault() Retries {
	d := DefaultRetries
	if r.MaxAttempts == 0 {
		r.MaxAttempts = d.MaxAttempts
	}
	if r.Initial == 0 {
		r.Initial = d.Initial
	}
	if r.Factor == 0 {
		r.Factor = d.Factor
	}
	if r.Max == 0 {
		r.Max = max(d.Max, r.Initial)
	}
	if r.Jitter == nil {
		r.Jitter = d.Jitter
	}
	return r
}

// Validate returns an error that names the field that is out of bounds and its bounds.
func (r Retries) Validate() error {
	hour := Millis(time.Hour).ms()
	switch {
	case r.MaxAttempts < 0 || r.MaxAttempts > 100:
		return fmt.Errorf("retries.maxAttempts is %d: it is 1 to 100", r.MaxAttempts)
	case r.Initial < 0 || r.Initial.ms() > hour:
		return fmt.Errorf("retries.initialMs is %d: it is 1 to %d", r.Initial.ms(), hour)
	case r.Factor != 0 && (r.Factor < 1 || r.Factor > 10):
		return fmt.Errorf("retries.factor is %g: it is 1 to 10", r.Factor)
	case r.Max < 0 || r.Max.ms() > 24*hour || r.Max != 0 && r.Max < r.Initial:
		return fmt.Errorf("retries.maxMs is %d: it is retries.initialMs to %d", r.Max.ms(), 24*hour)
	case r.Jitter != nil && !(*r.Jitter >= 0 && *r.Jitter <= 1):
		return fmt.Errorf("retries.jitter is %g: it is 0 to 1", *r.Jitter)
	}
	return nil
}
