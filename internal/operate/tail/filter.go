package tail

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// maxGrep is the longest regular expression of a filter, in bytes.
	maxGrep = 256
	// maxGrepSteps is the largest regular expression of a filter after its compilation, in instructions. The time to
	// match a text grows with the product of this and the length of the text.
	maxGrepSteps = 500
	// maxStatus is how many statuses a filter may name.
	maxStatus = 16
)

// What a tail shows: log lines, ended events, or both.
const (
	OnlyLogs   = "logs"
	OnlyEvents = "events"
)

// Outcomes of an attempt, in Entry.Outcome.
const (
	OutcomeOK          = "ok"          // the handler succeeded
	OutcomeFailed      = "failed"      // Entry.Reason and Entry.Message say why
	OutcomeBroken      = "broken"      // the body of the response broke off after its head; Reason and Message say why
	OutcomeRetry       = "retry"       // the handler called event.retry()
	OutcomeInterrupted = "interrupted" // the event runs again, through no fault of its own
	OutcomeCancelled   = "cancelled"   // somebody cancelled the event
)

var outcomes = []string{OutcomeOK, OutcomeFailed, OutcomeBroken, OutcomeRetry, OutcomeInterrupted,
	OutcomeCancelled}

// Filter chooses log lines and ended events of one owner. Empty fields choose all.
type Filter struct {
	Worker string `json:"worker,omitempty"`
	Only   string `json:"only,omitempty"` // OnlyLogs, OnlyEvents, or "" for both
	// this level and higher; events that failed, or whose body broke off, have the level error, others info
	Level   string   `json:"level,omitempty"`
	Version string   `json:"version,omitempty"` // whole, or its number
	EventID string   `json:"eventId,omitempty"` // only lines and ends of the event of this ID
	Status  []string `json:"status,omitempty"`  // only ended events: an outcome, a reason, an HTTP status, or 2xx to 5xx
	Grep    string   `json:"grep,omitempty"`    // regular expression (RE2) for text and stack, or for id and message of an event
	Sample  float64  `json:"sample,omitempty"`  // share of the events, above 0 to 1; 0 is 1
}

// FieldError says what is wrong with a field of a request, and what is allowed.
type FieldError struct{ Field, Text string }

func (e *FieldError) Error() string { return e.Field + " " + e.Text }

func wrong(field, format string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// Check returns a *FieldError for the first field that is wrong.
func (f Filter) Check() error {
	_, err := f.parse()
	return err
}

// matcher is a Filter in the form that is quick to apply.
type matcher struct {
	Filter
	level int
	grep  func(string) bool // nil: everything
}

func (f Filter) parse() (*matcher, error) {
	m := &matcher{Filter: f}
	switch {
	case f.Worker != "" && !events.ValidName(f.Worker):
		return nil, &FieldError{"worker", strings.TrimPrefix(events.CheckName("worker", f.Worker).Error(), "worker ")}
	case f.Only != "" && f.Only != OnlyLogs && f.Only != OnlyEvents:
		return nil, wrong("only", "%.40q: it is %s or %s", f.Only, OnlyLogs, OnlyEvents)
	case f.Level != "" && !slices.Contains(events.LogLevels, f.Level):
		return nil, wrong("level", "%.40q: it is one of %s", f.Level, strings.Join(events.LogLevels, ", "))
	case f.Version != "" && !events.ValidName(f.Version):
		return nil, wrong("version", "%.80q: it is a version like 12-0123456789ab, or its number", f.Version)
	case len(f.EventID) > events.MaxEventID:
		return nil, wrong("eventId", "has %d bytes: it has at most %d", len(f.EventID), events.MaxEventID)
	case !(f.Sample >= 0 && f.Sample <= 1): // written so that NaN is refused
		return nil, wrong("sample", "is %g: it is a share above 0, to 1", f.Sample)
	case len(f.Status) > maxStatus:
		return nil, wrong("status", "has %d entries: it has at most %d", len(f.Status), maxStatus)
	case len(f.Status) > 0 && f.Only == OnlyLogs:
		return nil, wrong("status", "chooses ended events, and only says %s: choose one", OnlyLogs)
	}
	for _, s := range f.Status {
		if !validStatus(s) {
			return nil, wrong("status", "%.40q: it is %s, a reason of a failure like timeout, an HTTP status, or one of 2xx, 3xx, 4xx, 5xx", s, strings.Join(outcomes, ", "))
		}
	}
	m.level = rank(f.Level)
	return m, m.compile()
}

func validStatus(s string) bool {
	if slices.Contains(outcomes, s) || slices.Contains([]string{"2xx", "3xx", "4xx", "5xx"}, s) {
		return true
	}
	if n, err := strconv.Atoi(s); err == nil {
		return len(s) == 3 && n >= 200 && n <= 599
	}
	_, err := events.ParseReason(s)
	return err == nil
}

// CheckRegexp returns an error if a regular expression that an owner chose is wrong, or costs too much: it has at most
// 256 bytes, and 500 instructions when it is compiled. An empty one is right.
func CheckRegexp(expr string) error {
	if len(expr) > maxGrep {
		return fmt.Errorf("has %d bytes: it has at most %d", len(expr), maxGrep)
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%q: %w", expr, err)
	}
	if n := steps(parsed); n > maxGrepSteps {
		return fmt.Errorf("%q costs too much: it has about %d instructions, and may have %d; repeat less", expr, n, maxGrepSteps)
	}
	return nil
}

// steps is about how many instructions a regular expression has when it is compiled. It is not compiled to find out:
// 256 bytes can become millions of instructions.
func steps(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n = min(n+steps(sub), 1<<20)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<20)
}

// compile prepares the regular expression. One without operators is compared as it is, which is much quicker.
func (m *matcher) compile() error {
	if m.Grep == "" {
		return nil
	}
	if err := CheckRegexp(m.Grep); err != nil {
		return wrong("grep", "%v", err)
	}
	re, err := regexp.Compile(m.Grep)
	if err != nil {
		return wrong("grep", "%q: %v", m.Grep, err)
	}
	m.grep = re.MatchString
	if text, all := re.LiteralPrefix(); all {
		m.grep = func(s string) bool { return strings.Contains(s, text) }
	}
	return nil
}

// rank is the place of a level in levels. An unknown level counts as info.
func rank(level string) int {
	if level == "" {
		return 0
	}
	if i := slices.Index(events.LogLevels, level); i >= 0 {
		return i
	}
	return 1
}

// wants reports whether the filter chooses e, apart from grep. It is quick: threads of handlers call it.
func (m *matcher) wants(e *Entry) bool {
	event, level := e.Type == TypeEvent, e.Level
	if event && (e.Outcome == OutcomeFailed || e.Outcome == OutcomeBroken) {
		level = "error"
	} else if event {
		level = "info"
	}
	switch {
	case m.Worker != "" && e.Worker != m.Worker,
		m.Only == OnlyLogs && event,
		(m.Only == OnlyEvents || len(m.Status) > 0) && !event,
		rank(level) < m.level,
		m.Version != "" && !isVersion(e.Version, m.Version),
		m.EventID != "" && e.EventID != m.EventID,
		len(m.Status) > 0 && !slices.ContainsFunc(m.Status, e.has):
		return false
	}
	return m.sampled(e)
}

func isVersion(version, wanted string) bool {
	number, _, _ := strings.Cut(version, "-")
	return version == wanted || number == wanted
}

// has reports whether an ended event has a status of a filter.
func (e *Entry) has(status string) bool {
	if status == e.Outcome || status == e.Reason {
		return true
	}
	code := strconv.Itoa(e.Status)
	return e.Status != 0 && (status == code || status == code[:1]+"xx")
}

// sampled reports whether e is in the sample. All lines of an event are, or none, in every process.
func (m *matcher) sampled(e *Entry) bool {
	if m.Sample == 0 || m.Sample == 1 {
		return true
	}
	if e.EventID == "" {
		return rand.Float64() < m.Sample
	}
	return Sampled(e.EventID, m.Sample)
}

// Sampled reports whether the event with that id is in a sample of this share, in every process. An id is chosen by
// whoever published the event.
func Sampled(id string, share float64) bool {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	return float64(mix(hash.Sum32())) < share*(1<<32)
}

// mix spreads a hash evenly over its range: those of ids that differ in the last letter are close to each other.
func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// finds reports whether the regular expression matches.
func (m *matcher) finds(e *Entry) bool {
	if m.grep == nil {
		return true
	}
	if e.Type == TypeEvent {
		return m.grep(e.EventID) || m.grep(e.Message)
	}
	return m.grep(e.Text) || m.grep(e.Stack)
}
