package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

// decodeRequest reads the JSON of a control request; no body is an empty object. The error names the field that is wrong and what is allowed.
func decodeRequest(data []byte, into any) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	if data[0] != '{' {
		return refused("the request is not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badField(err, into)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refused("something follows the JSON object of the request")
	}
	return nil
}

func badField(err error, into any) error {
	var wrong *json.UnmarshalTypeError
	text := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case strings.HasPrefix(text, "unknown field"):
		return refused("%s: a request may have %s", text, strings.Join(fieldNames(reflect.TypeOf(into).Elem()), ", "))
	case errors.As(err, &wrong):
		return refused("field %q is a JSON %s: it is %s", wrong.Field, wrong.Value, kindOfJSON(wrong.Type))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refused("the request is not JSON: it ends too early")
	}
	return refused("the request is not JSON: %s", text)
}

// fieldNames are the keys of a struct in JSON, those of embedded ones with them.
func fieldNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		} else if f.Anonymous {
			names = append(names, fieldNames(f.Type)...)
		}
	}
	return names
}

func kindOfJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Uint64:
		return "a whole number, 0 or more"
	}
	return "a number"
}

// filterRequest chooses dead letters, as the flags of the command do.
type filterRequest struct {
	Owner   string `json:"owner"`
	Worker  string `json:"worker"`
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
	Since   string `json:"since"`
	Until   string `json:"until"`
	Match   string `json:"match"`
	Replays string `json:"replays"`
	After   uint64 `json:"after"`
	Limit   int    `json:"limit"`
}

func (r filterRequest) selection() *selection {
	return &selection{
		owner: r.Owner, worker: r.Worker, kind: r.Kind, reason: r.Reason, since: r.Since, until: r.Until, match: r.Match, replays: r.Replays,
		limit: r.Limit, after: r.After,
	}
}

// filter reads it. An error is that of the command, whose flags have the names of the fields.
func (r filterRequest) filter() (consumer.Filter, error) {
	f, err := r.selection().filter()
	if err != nil {
		return f, refused("%s", strings.TrimPrefix(err.Error(), "--"))
	}
	return f, nil
}

// maxControlIDs is how many letters a request may name.
const maxControlIDs = 10_000

// selectRequest chooses letters to act on.
type selectRequest struct {
	IDs []uint64 `json:"ids"`
	All bool     `json:"all"`
	filterRequest
	DryRun bool `json:"dryRun"`
}

func (r selectRequest) selected() (consumer.Selection, error) {
	f, err := r.filter()
	if err != nil {
		return consumer.Selection{}, err
	}
	narrow := r.selection().narrow()
	switch {
	case len(r.IDs) > maxControlIDs:
		return consumer.Selection{}, refused("ids has %d entries: it has at most %d", len(r.IDs), maxControlIDs)
	case len(r.IDs) > 0 && (narrow || r.All || r.Limit != 0):
		return consumer.Selection{}, refused("ids, or fields that choose: not both")
	case r.All && narrow:
		return consumer.Selection{}, refused("all, or fields that choose: not both")
	case len(r.IDs) == 0 && !r.All && !narrow:
		return consumer.Selection{}, refused("which dead letters? Name ids, choose by fields like owner, or say all")
	case len(r.IDs) > 0:
		return consumer.Selection{IDs: r.IDs}, nil
	}
	return consumer.Selection{Filter: f}, nil
}

// editRequest changes letters.
type editRequest struct {
	Body          *string         `json:"body"`
	BodyBase64    []byte          `json:"bodyBase64"`
	Patch         json.RawMessage `json:"patch"`
	SetHeaders    events.Header   `json:"setHeaders"`
	RemoveHeaders []string        `json:"removeHeaders"`
}

func (r editRequest) edit() (events.Edit, error) {
	e := events.Edit{Body: r.BodyBase64, Patch: r.Patch, Set: r.SetHeaders, Remove: r.RemoveHeaders}
	if r.Body != nil {
		if r.BodyBase64 != nil {
			return e, refused("body, or bodyBase64: not both")
		}
		e.Body = []byte(*r.Body)
	}
	if err := e.Validate(); err != nil {
		return e, refused("%v", err)
	}
	return e, nil
}

// replayRequest replays letters.
type replayRequest struct {
	selectRequest
	editRequest
	Rate       float64 `json:"rate"`
	MaxReplays int     `json:"maxReplays"`
	Force      bool    `json:"force"`
	To         string  `json:"to"`
}

func (r replayRequest) options() (o consumer.ReplayOptions, err error) {
	o = consumer.ReplayOptions{MaxReplays: r.MaxReplays, Force: r.Force, Rate: r.Rate, DryRun: r.DryRun}
	switch {
	case r.Rate < 0 || r.Rate > 1e6:
		return o, refused("rate is %g: it is a number a second, to 1000000, or 0 for no limit", r.Rate)
	case r.MaxReplays < 0:
		return o, refused("maxReplays is %d: it is 1 or more, or 0 for %d", r.MaxReplays, consumer.DefaultMaxReplays)
	case r.To != "":
		if o.To, err = events.ParseTo(r.To); err != nil {
			return o, refused("to: %v", err)
		}
	}
	o.Edit, err = r.edit()
	return o, err
}
