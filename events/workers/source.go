package workers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Source says whose messages start a worker: those of a stream, of core subjects, of the keys of a KV bucket, or of an
// object store. Each message becomes a task event. Exactly one of Stream, Subject, KV and Objects is set.
type Source struct {
	Stream string `json:"stream,omitempty"`
	// Subjects are the filters of a stream: patterns. None = all of its messages.
	Subjects []string `json:"subjects,omitempty"`
	// Subject is a pattern of core subjects. Messages that are published while no process listens are lost.
	Subject string `json:"subject,omitempty"`
	KV      string `json:"kv,omitempty"` // a bucket
	// Keys are the filters of a bucket: patterns. None = all of its keys.
	Keys    []string `json:"keys,omitempty"`
	Objects string   `json:"objects,omitempty"` // an object store
	// Connection is one of PINWHEEL_SOURCES; "" = that of the fleet.
	Connection string `json:"connection,omitempty"`
	Start      Start  `json:"start,omitzero"`
}

// Start says which message of a stream, a bucket or an object store comes first when the worker gets the source. The
// zero Start means StartNew. Later versions of the worker continue where the source is.
type Start struct {
	From     string `json:"from,omitempty" manifest:"short"` // StartNew or StartAll
	Sequence int64  `json:"sequence,omitempty"`              // of the stream
	Time     string `json:"time,omitempty"`                  // RFC 3339
}

// Values of Start.From.
const (
	StartNew = "new" // those that are stored after the deploy
	StartAll = "all" // from the first that is stored
)

const (
	// MaxSources is the most sources of a worker.
	MaxSources = 16
	// maxAssetName is the longest name of a stream or bucket, bytes.
	maxAssetName = 200
)

// Names of streams in which nats-server keeps buckets and object stores.
const (
	kvStream     = "KV_"
	objectStream = "OBJ_"
)

// StreamName is the stream of the source; "" = it is of core subjects.
func (s Source) StreamName() string {
	switch {
	case s.KV != "":
		return kvStream + s.KV
	case s.Objects != "":
		return objectStream + s.Objects
	}
	return s.Stream
}

// SourceOf is the source of all of a stream, which may be that of a bucket or of an object store.
func SourceOf(stream string) Source {
	if name, is := strings.CutPrefix(stream, kvStream); is {
		return Source{KV: name}
	}
	if name, is := strings.CutPrefix(stream, objectStream); is {
		return Source{Objects: name}
	}
	return Source{Stream: stream}
}

// Filters are the subjects that the source has of its stream, or of core NATS. None = all of the stream.
func (s Source) Filters() []string {
	switch {
	case s.Subject != "":
		return []string{s.Subject}
	case s.KV != "" && len(s.Keys) == 0:
		return []string{"$KV." + s.KV + ".>"}
	case s.KV != "":
		filters := make([]string, len(s.Keys))
		for i, key := range s.Keys {
			filters[i] = "$KV." + s.KV + "." + key
		}
		return filters
	case s.Objects != "":
		return []string{"$O." + s.Objects + ".M.>"}
	}
	return slices.Clone(s.Subjects)
}

// Name is the kind of the source, and the name of what it reads.
func (s Source) Name() string {
	switch {
	case s.Subject != "":
		return "subject " + s.Subject
	case s.KV != "":
		return "kv " + s.KV
	case s.Objects != "":
		return "objects " + s.Objects
	}
	return "stream " + s.Stream
}

// String names the source as people do, with its connection.
func (s Source) String() string {
	if s.Connection != "" {
		return s.Name() + " of " + s.Connection
	}
	return s.Name()
}

// Validate returns an error that names the field that is wrong and what is allowed.
func (s Source) Validate() error {
	set := 0
	for _, v := range []string{s.Stream, s.Subject, s.KV, s.Objects} {
		if v != "" {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf("stream is one of stream, subject, kv and objects: a source has exactly one of them")
	case len(s.Subjects) > 0 && s.Stream == "":
		return fmt.Errorf("subjects is for a stream")
	case len(s.Keys) > 0 && s.KV == "":
		return fmt.Errorf("keys is for kv")
	case s.Connection != "" && !events.ValidName(s.Connection):
		return fmt.Errorf("connection is %.70q: it is 1 to %d of A-Z a-z 0-9 _ -", s.Connection, events.MaxName)
	}
	for _, n := range []struct{ field, name string }{{"stream", s.Stream}, {"kv", s.KV}, {"objects", s.Objects}} {
		if n.name == "" {
			continue
		}
		if err := checkAssetName(n.name, n.field == "stream"); err != nil {
			return fmt.Errorf("%s is %.80q: %w", n.field, n.name, err)
		}
	}
	if s.Subject != "" {
		if err := checkListened(s.Subject); err != nil {
			return fmt.Errorf("subject is no source: %w", err)
		}
	}
	for _, l := range []struct {
		field string
		list  []string
	}{{"subjects", s.Subjects}, {"keys", s.Keys}} {
		if err := checkFilters(l.field, l.list); err != nil {
			return err
		}
	}
	return s.validateStart()
}

func (s Source) validateStart() error {
	t := s.Start
	if t == (Start{}) {
		return nil
	}
	set := 0
	for _, is := range []bool{t.From != "", t.Sequence != 0, t.Time != ""} {
		if is {
			set++
		}
	}
	switch _, err := time.Parse(time.RFC3339Nano, t.Time); {
	case s.Subject != "":
		return fmt.Errorf("start is for what is stored: a core subject has only new messages")
	case set != 1, t.From != "" && t.From != StartNew && t.From != StartAll, t.Sequence < 0:
		return fmt.Errorf(`start is "new", "all", {"sequence": N} or {"time": "2026-01-02T15:04:05Z"}`)
	case t.Time != "" && err != nil:
		return fmt.Errorf("start.time is %.60q: it is a time in RFC 3339, like 2026-01-02T15:04:05Z", t.Time)
	}
	return nil
}

// checkAssetName returns why name cannot be that of a stream, or of a bucket. Those of fleets are nobody's source,
// whatever their case, on every connection.
func checkAssetName(name string, stream bool) error {
	if len(name) > maxAssetName {
		return fmt.Errorf("at most %d bytes are allowed", maxAssetName)
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !letter && (!stream || c <= ' ' || c >= 0x7f || strings.IndexByte(`.*>/\"'$`, c) >= 0) {
			return fmt.Errorf("it has %q, which no name of a source has", name[i:i+1])
		}
	}
	bare := strings.ToUpper(name)
	for _, prefix := range []string{kvStream, objectStream} {
		bare = strings.TrimPrefix(bare, prefix)
	}
	if strings.HasPrefix(bare, "PINWHEEL_") {
		return fmt.Errorf("names that begin with PINWHEEL_ are those of fleets")
	}
	return nil
}

// checkListened returns why a pattern of core subjects cannot be a source. The first token is no wildcard: such a
// pattern would have the subjects of NATS and of the fleet.
func checkListened(pattern string) error {
	if err := CheckSubjectPattern(pattern); err != nil {
		return err
	}
	if first, _, _ := strings.Cut(pattern, "."); first == "*" || first == ">" {
		return fmt.Errorf("subject %.80q: the first token is no wildcard", pattern)
	}
	return nil
}

// checkFilters checks patterns of subjects or keys that a stream has.
func checkFilters(field string, list []string) error {
	if len(list) > MaxSubjects {
		return fmt.Errorf("%s has %d: at most %d are allowed", field, len(list), MaxSubjects)
	}
	for i, text := range list {
		if text != "" && text[0] == '_' && field == "keys" { // keys may begin so
			text = text[1:] + "x"
		}
		if err := CheckSubjectPattern(text); err != nil {
			return fmt.Errorf("%s[%d] is no filter: %w", field, i, err)
		}
		for j := range i {
			if Overlap(list[i], list[j]) {
				return fmt.Errorf("%s[%d] is %s: it overlaps with %s, and each message comes once", field, i, list[i], list[j])
			}
		}
	}
	return nil
}

// Overlap reports whether a subject fits both patterns.
func Overlap(a, b string) bool {
	for {
		x, restA, moreA := strings.Cut(a, ".")
		y, restB, moreB := strings.Cut(b, ".")
		switch {
		case x == ">" || y == ">":
			return true
		case x != "*" && y != "*" && x != y:
			return false
		case !moreA || !moreB:
			return moreA == moreB
		}
		a, b = restA, restB
	}
}

// overlaps reports whether two sources may get the same message.
func (s Source) overlaps(o Source) bool {
	return s.Connection == o.Connection && s.StreamName() == o.StreamName() && FiltersOverlap(s.Filters(), o.Filters())
}

// FiltersOverlap reports whether a subject may fit both lists of filters. An empty list is all subjects.
func FiltersOverlap(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool { return Overlap(x, y) })
	})
}

func (s Spec) validateSources() error {
	if len(s.Sources) > MaxSources {
		return fmt.Errorf("sources has %d: at most %d are allowed", len(s.Sources), MaxSources)
	}
	for i, source := range s.Sources {
		if err := source.Validate(); err != nil {
			return fmt.Errorf("sources[%d].%w", i, err)
		}
		for j := range i {
			if source.overlaps(s.Sources[j]) {
				return fmt.Errorf("sources[%d] is %s: it overlaps with sources[%d], and each message starts a worker once",
					i, source, j)
			}
		}
	}
	return nil
}

// MarshalJSON writes StartNew and StartAll as manifests have them.
func (t Start) MarshalJSON() ([]byte, error) {
	if t.From != "" {
		return json.Marshal(t.From)
	}
	type long Start
	return json.Marshal(long(t))
}

// UnmarshalJSON reads both forms.
func (t *Start) UnmarshalJSON(data []byte) error {
	*t = Start{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &t.From)
	}
	type long Start
	return json.Unmarshal(data, (*long)(t))
}

// SourceFault says that a source cannot be consumed. Its text begins with the path of the source in the manifest.
type SourceFault struct{ Text string }

// Error is the text.
func (e *SourceFault) Error() string { return e.Text }

// NewSourceFault makes a fault of the source with this index.
func NewSourceFault(index int, format string, args ...any) *SourceFault {
	return &SourceFault{fmt.Sprintf("sources[%d] is ", index) + fmt.Sprintf(format, args...)}
}
