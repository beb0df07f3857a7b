package workers

import (
	"fmt"
	"strconv"
	"strings"
)

// KeepRuns says of which attempts the run history keeps a record: none, failures, all, or failures and a share of the
// successes, such as 1%. "" is what the fleet has.
type KeepRuns string

// The values of KeepRuns that are words.
const (
	RunsNone     KeepRuns = "none"
	RunsFailures KeepRuns = "failures" // all attempts that did not succeed, and what follows them
	RunsAll      KeepRuns = "all"
)

// Share is the share of the successes that are kept, 0 to 1. ok is false when nothing is kept, or r is not valid.
func (r KeepRuns) Share() (share float64, ok bool) {
	switch r {
	case RunsAll:
		return 1, true
	case RunsFailures:
		return 0, true
	case RunsNone, "":
		return 0, false
	}
	number, found := strings.CutSuffix(string(r), "%")
	if !found || len(number) > maxPercent || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	percent, err := strconv.ParseFloat(number, 64)
	return percent / 100, err == nil && percent > 0 && percent <= 100
}

// maxPercent is how many digits a share may have.
const maxPercent = 8

// Check returns an error that says what is allowed.
func (r KeepRuns) Check() error {
	if _, ok := r.Share(); ok || r == "" || r == RunsNone {
		return nil
	}
	return fmt.Errorf(`runs is %.40q: it is %s, %s, %s, a share of the successes like 1%%, or "" for what the fleet has`,
		string(r), RunsNone, RunsFailures, RunsAll)
}
