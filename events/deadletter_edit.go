package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Edit is a change of the event in a dead letter. The zero Edit changes nothing.
type Edit struct {
	Body   []byte // not nil: the new body
	Patch  []byte // not nil: a JSON merge patch (RFC 7396) for the body
	Set    Header // headers to replace; the case of names makes no difference
	Remove []string
}

// Empty reports whether e changes nothing.
func (e Edit) Empty() bool {
	return e.Body == nil && e.Patch == nil && len(e.Set) == 0 && len(e.Remove) == 0
}

// Validate returns an error that says what in e is not allowed.
func (e Edit) Validate() error {
	if e.Body != nil && e.Patch != nil {
		return errors.New("a new body, or a patch for the old one: not both")
	}
	if e.Patch != nil && !json.Valid(e.Patch) {
		return errors.New("the patch is not JSON")
	}
	for name, values := range e.Set {
		if err := checkEditable(name); err != nil {
			return err
		}
		for _, v := range values {
			if err := checkHeader(name, v); err != nil {
				return err
			}
		}
	}
	for _, name := range e.Remove {
		if err := checkEditable(name); err != nil {
			return err
		}
	}
	return nil
}

func checkEditable(name string) error {
	if serverHonoured(name) || hasPrefixFold(name, deadPrefix) || strings.EqualFold(name, HeaderEventID) {
		return fmt.Errorf("header %s: Nats-*, %s*, Status, Description and %s cannot be edited", name, deadPrefix, HeaderEventID)
	}
	return nil
}

// Edit returns a copy of d with the change e, made at the given time. The copy has the same identity, history and
// counts.
func (d *DeadLetter) Edit(e Edit, at time.Time) (*DeadLetter, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	edited := *d
	edited.Edited = at
	edited.Header = make(Header, len(d.Header)+len(e.Set))
	for name, values := range d.Header {
		if !oneOfFold(name, e.Remove...) && !namesFold(e.Set, name) {
			edited.Header[name] = values
		}
	}
	for name, values := range e.Set {
		edited.Header[name] = values
	}
	if d.Block != nil && len(e.Set)+len(e.Remove) > 0 {
		edited.Block = nil
		if edited.Header.CheckWritable() != nil {
			edited.Block = edited.Header.Block()
		}
	}
	if slices.ContainsFunc(slices.Concat(e.Remove, slices.Collect(maps.Keys(e.Set))), isSourceHeader) {
		edited.Subject = strings.TrimSuffix(d.Subject, sourceSuffix) // what the letter says of its source is not the fleet's
	}
	switch {
	case e.Body != nil:
		edited.Body = e.Body
	case e.Patch != nil:
		var err error
		if edited.Body, err = mergePatch(d.Body, e.Patch); err != nil {
			return nil, fmt.Errorf("dead letter %d: %w", d.Seq, err)
		}
	}
	return &edited, nil
}

// SameEvent reports whether d and other have the same headers and body: an edit from one to the other changed nothing.
func (d *DeadLetter) SameEvent(other *DeadLetter) bool {
	return bytes.Equal(d.Body, other.Body) && maps.EqualFunc(d.Header, other.Header, slices.Equal)
}

func namesFold(h Header, name string) bool {
	for n := range h {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// mergePatch applies a patch as RFC 7396 says. A patch that changes nothing returns the same bytes.
func mergePatch(body, patch []byte) ([]byte, error) {
	var target, p, before any
	if err := decodeNumbers(body, &target); err != nil {
		return nil, fmt.Errorf("its body is not JSON, so it cannot be patched: %w", err)
	}
	_ = decodeNumbers(body, &before) // merge changes target
	if err := decodeNumbers(patch, &p); err != nil {
		return nil, fmt.Errorf("the patch is not JSON: %w", err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	after := merge(target, p)
	if reflect.DeepEqual(before, after) {
		return body, nil
	}
	if err := enc.Encode(after); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// decodeNumbers decodes JSON and keeps numbers as they are written.
func decodeNumbers(text []byte, into *any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, v := range changes {
		if v == nil {
			delete(object, name)
		} else {
			object[name] = merge(object[name], v)
		}
	}
	return object
}
