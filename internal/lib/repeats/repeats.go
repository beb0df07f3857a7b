// Package repeats logs failures that repeat: a line for each cause in a while, with the number of times.
package repeats

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// Every is how often a cause is logged while it lasts.
	Every = 10 * time.Second
	// maxCauses is how many causes are told apart. Those beyond it count as one for each message.
	maxCauses = 256
)

// Log logs failures that repeat. Make it with New. The nil Log logs nothing. Any goroutine may call its methods.
type Log struct {
	log zerolog.Logger
	now func() time.Time

	mu     sync.Mutex
	causes map[cause]*seen
}

// cause tells lines apart. Publishers may choose the text of an error.
type cause struct{ message, err string }

// seen is what is known of a cause.
type seen struct {
	told  time.Time // when it was logged last
	times int       // how often it happened since then
}

// New makes a Log that writes to log.
func New(log zerolog.Logger) *Log {
	return &Log{log: log, now: time.Now, causes: make(map[cause]*seen)}
}

// Warn begins a line with message, err and, as "times", how often this happened since the last such line. It returns
// nil, which zerolog takes, when that line is too recent. The caller adds fields and calls Send.
func (l *Log) Warn(err error, message string) *zerolog.Event {
	return l.line(zerolog.WarnLevel, err, message)
}

// Error is Warn with the level error.
func (l *Log) Error(err error, message string) *zerolog.Event {
	return l.line(zerolog.ErrorLevel, err, message)
}

func (l *Log) line(level zerolog.Level, err error, message string) *zerolog.Event {
	if l == nil {
		return nil
	}
	times := l.count(cause{message, text(err)})
	if times == 0 {
		return nil
	}
	line := l.log.WithLevel(level).Str(zerolog.MessageFieldName, message).AnErr(zerolog.ErrorFieldName, err)
	if times > 1 {
		line = line.Int("times", times)
	}
	return line
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// count counts a cause. It returns how often it happened since it was logged, or 0 when that was less than Every ago.
func (l *Log) count(c cause) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	s := l.causes[c]
	if s == nil && len(l.causes) >= maxCauses {
		l.forget(now)
		if len(l.causes) >= maxCauses {
			c.err = ""
			s = l.causes[c]
		}
	}
	if s == nil {
		s = &seen{}
		l.causes[c] = s
	}
	s.times++
	if now.Sub(s.told) < Every {
		return 0
	}
	times := s.times
	s.told, s.times = now, 0
	return times
}

// forget removes the causes that have not been logged for Every, with their counts. mu is held.
func (l *Log) forget(now time.Time) {
	for c, s := range l.causes {
		if now.Sub(s.told) >= Every {
			delete(l.causes, c)
		}
	}
}
