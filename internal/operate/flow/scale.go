package flow

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// The rule by which Scale.Wanted is made (docs/guides/scale.md).
const (
	// DefaultTarget is how many events may wait for each process.
	DefaultTarget = 1000
	// busyTarget is which share of what processes can do they should do. What is left takes bursts.
	busyTarget = 0.8
	// MaxWanted is the most that Scale.Wanted says.
	MaxWanted = 1000
)

// Scale is how much a fleet has to do, and how many processes that needs. As JSON it is what GET /scale answers.
type Scale struct {
	Wanted        int     `json:"wanted"`        // processes, 1 to MaxWanted
	Waiting       uint64  `json:"waiting"`       // events that wait for a thread: in all lanes, parked, and in processes
	Paused        uint64  `json:"paused"`        // events that wait until their owner or worker is resumed
	Limited       uint64  `json:"limited"`       // of these, events that limits of the fleet hold back however many processes there are
	OldestSeconds float64 `json:"oldestSeconds"` // since the oldest event that has not ended was stored; 0 = there is none
	Busy          float64 `json:"busy"`          // the mean of all processes' control.Flow.Busy, 0 to 1
	Processes     int     `json:"processes"`     // that take events, and those that were heard of lately and do not answer
}

// ScaleOf says what a fleet has to do. target is how many events may wait for each process, at least 1. The error is
// that counts are missing, in words for operators.
func ScaleOf(now Snapshot, target int) (s Scale, err error) {
	oldest := time.Time{}
	stored := uint64(0)
	streams := map[string]*control.StreamStats{"events": now.Stored.Events, "parked events": now.Stored.Parked}
	for name, one := range streams {
		if one == nil {
			return s, fmt.Errorf("the stream of %s is not there: a process creates it again", name)
		}
		messages := one.Messages
		if one == now.Stored.Parked { // another moment: some may have ended or been resumed since
			s.Paused = min(now.Paused, messages)
			messages -= s.Paused
		}
		if stored += messages; messages == 0 {
			continue
		}
		if !one.Oldest.IsZero() && (oldest.IsZero() || one.Oldest.Before(oldest)) {
			oldest = one.Oldest
		}
	}
	if !oldest.IsZero() {
		s.OldestSeconds = math.Round(max(0, now.At.Sub(oldest).Seconds())*1000) / 1000
	}
	if len(now.Flows) == 0 {
		return s, errors.New("no process says what it does")
	}
	held, queued, retrying, busy := 0, 0, 0, 0.0
	for _, p := range now.Flows {
		held, queued, retrying = held+p.Held, queued+p.Queued, retrying+p.Waiting
		if p.Draining {
			continue
		}
		s.Processes++
		share := busyTarget // it is new, or of an earlier release: neither more nor fewer are wanted for it
		if p.Busy != nil {
			share = min(1, max(0, *p.Busy))
		}
		busy += share
	}
	s.Processes += len(now.Missing)
	busy += busyTarget * float64(len(now.Missing))
	// What a process holds is queued, runs, or waits for its next attempt, which more processes do not hasten.
	s.Waiting = stored - min(stored, uint64(max(0, held))) + uint64(max(0, queued))
	s.Limited = min(s.Waiting, heldBack(now.Limits, retrying))
	if s.Processes > 0 {
		s.Busy = math.Round(busy/float64(s.Processes)*1000) / 1000
	}
	s.Wanted = wanted(s, target)
	return s, nil
}

// wanted is as many processes as have the work that is done now at busyTarget, or as many as may have so many events
// waiting, whichever is more. It never falls when more events wait. Events that no further process would start want
// none.
func wanted(s Scale, target int) int {
	busy := s.Busy * float64(s.Processes) / busyTarget
	waiting := float64(s.Waiting-s.Limited) / float64(target)
	return int(min(MaxWanted, max(1, math.Ceil(busy-1e-9), math.Ceil(waiting))))
}
