package wire

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// stays has the fields that do not travel, and why. Every other field of these types arrives.
var stays = map[reflect.Type]map[string]string{
	reflect.TypeFor[lifecycle.Attempt](): {
		"Worker":  "has a number, and the cell sets it",
		"Status":  "is set by dispatch when the reply is reported",
		"Sent":    "is set by dispatch when the reply is reported",
		"Replied": "is set by dispatch when the reply is reported",
		"Trace":   "is a Context, and the cell makes a Trace of it",
		"Slot":    "belongs to the maker of the attempt",
	},
	reflect.TypeFor[lifecycle.Delivery](): {
		"Owner":      "the cell sets it: that of the worker",
		"Worker":     "the cell sets it: that of the worker",
		"Version":    "dispatch chose the worker",
		"VersionKey": "dispatch chose the worker",
		"ReplyTo":    "the broker answers",
		"Credit":     "is in Requester",
		"Deadline":   "the broker's Halt and dispatch keep it",
		"Origin":     "the consumer settles it",
		"First":      "the consumer settles it",
		"Key":        "the consumer settles it",
		"DeliverAt":  "the consumer has kept it",
		"Crashes":    "dispatch counts them",
		"began":      "dispatch notes it",
		"cancelled":  "CancelEvent says it",

		"BySplit":      "dispatch chose the worker",
		"CrashedAlone": "dispatch counts crashes",
		"Spared":       "dispatch counts crashes",
		"Watched":      "dispatch counts crashes",
		"Parked":       "dispatch has let it start",
		"Asked":        "dispatch decides about the next run",
		"Interrupted":  "dispatch decides about the next run",
		"Caller":       "the broker answers",
		"Halt":         "the Halt of the attempt stands for both",
		"Trace":        "the Trace of the attempt is below it",
		"Holder":       "the consumer settles it",
	},
	reflect.TypeFor[events.Parts](): {
		"ID":   "the broker reads the parts",
		"Read": "the cell sets it: a call",
		"Free": "the cell has memory of its own",
	},
	reflect.TypeFor[events.ServiceCall](): {
		"callers": "the broker bounds the depth of calls",
		"tree":    "the broker bounds the number of calls",
	},
	reflect.TypeFor[events.Requester](): {
		"gone": "a frame says it",
	},
	reflect.TypeFor[events.TraceContext](): {},
	reflect.TypeFor[events.Reply](): {
		"Stream":        "the broker makes one of the chunks",
		"CreditSubject": "the consumer makes it",
		"Socket":        "has a number, and the broker makes one",
		"EventID":       "dispatch completes it",
		"Attempt":       "dispatch completes it",
		"Version":       "dispatch completes it",
		"Duration":      "dispatch completes it",
	},
	reflect.TypeFor[lifecycle.End](): {
		"Died": "the broker says it, of a cell that has ended",
	},
	reflect.TypeFor[lifecycle.Item](): {},
	reflect.TypeFor[events.Failure](): {
		"RetryAfter": "only dispatch sets it",
	},
	reflect.TypeFor[events.Chunk](): {},
	reflect.TypeFor[lifecycle.Report](): {
		"Attempt": "has a number, and the broker finds it",
		"Closed":  "is a frame of its own",
	},
}

// fieldsOf returns the fields of a struct that are not zero, with those of the structs that it embeds. all returns the
// others too.
func fieldsOf(v reflect.Value, all bool) (names []string) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.Anonymous && (all || !v.FieldByIndex(f.Index).IsZero()) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// check requires that exactly the fields which do not stay have arrived, in one of the values.
func check(t *testing.T, values ...any) {
	t.Helper()
	first := reflect.ValueOf(values[0]).Elem()
	of := first.Type()
	names, here := fieldsOf(first, true), []string(nil)
	for _, one := range values {
		here = append(here, fieldsOf(reflect.ValueOf(one).Elem(), false)...)
	}
	var want []string
	for _, name := range names {
		if stays[of][name] == "" {
			want = append(want, name)
		}
	}
	slices.Sort(here)
	require.Equal(t, want, slices.Compact(here), "fields of %s: a new one travels, or stays names it with a reason", of)
	for name := range maps.Keys(stays[of]) {
		require.Contains(t, names, name, "%s has no such field", of)
	}
}

// Each field of what an attempt has either arrives in the cell or is named with a reason why not.
func TestEachFieldOfAnAttemptTravelsOrStays(t *testing.T) {
	t.Parallel()
	a := &lifecycle.Attempt{Batch: []*lifecycle.Delivery{
		{Event: events.Event{Kind: events.Fetch}}, {Event: events.Event{Kind: events.Scheduled}}}}
	a.Event = a.Batch[0]
	full(t, reflect.ValueOf(a).Elem())
	for _, e := range a.Batch {
		full(t, reflect.ValueOf(e).Elem())
	}
	var w Writer
	PutAttempt(&w, 1, 1, a)
	r := NewReader(w.b)
	got := ReadAttempt(r)
	require.NoError(t, r.Done())
	check(t, &got.Attempt)
	check(t, got.Batch[0], got.Batch[1])
	check(t, got.Event.Parts)
	check(t, got.Event.Service)
	check(t, got.Event.Requester)
	check(t, &got.Context)
}

// The same for what comes back.
func TestEachFieldOfAReportTravelsOrStays(t *testing.T) {
	t.Parallel()
	reason := events.Failure{Reason: events.ReasonCPU}
	full(t, reflect.ValueOf(&reason).Elem())
	rep := lifecycle.Report{Reply: &events.Reply{Status: 101, Headers: []string{"a", "b"}, Failure: &reason},
		End: &lifecycle.End{Failure: &reason, Broken: &reason, Items: []lifecycle.Item{
			{Decision: lifecycle.Failed, Delay: 1, Failure: &reason}}}}
	full(t, reflect.ValueOf(rep.Reply).Elem())
	full(t, reflect.ValueOf(rep.End).Elem())
	var w Writer
	PutReport(&w, 1, &rep, 1)
	r := NewReader(w.b)
	s := ReadReport(r)
	require.NoError(t, r.Done())
	check(t, &lifecycle.Report{Reply: s.Reply, End: s.End})
	check(t, s.Reply)
	check(t, s.End)
	check(t, &s.End.Items[0])
	check(t, s.End.Failure)
	require.Equal(t, []any{true, uint64(1)}, []any{s.Stream, s.Socket})

	c := events.Chunk{Failure: &reason}
	full(t, reflect.ValueOf(&c).Elem())
	w = Writer{}
	PutChunk(&w, 1, c)
	_, c = ReadChunk(NewReader(w.b))
	check(t, &c)
}

// What goes as JSON loses no field.
func TestEachFieldOfWhatGoesAsJSONArrives(t *testing.T) {
	t.Parallel()
	for _, v := range []any{&workers.Worker{Handlers: events.Kinds[:]}, &Pool{}, &SentSpan{}, &events.LogLine{}} {
		full(t, reflect.ValueOf(v).Elem())
		text, err := json.Marshal(v)
		require.NoError(t, err)
		got := reflect.New(reflect.TypeOf(v).Elem())
		require.NoError(t, json.Unmarshal(text, got.Interface()))
		again, err := json.Marshal(got.Interface())
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		require.Equal(t, fieldsOf(reflect.ValueOf(v).Elem(), true), fieldsOf(got.Elem(), false), "%T", v)
	}
}
