package deploy

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

	"github.com/pinwheel-run/pinwheel/events"
)

// ParseManifest reads a manifest file and validates it. The error is a *SourceError: unknown keys, doubled keys, wrong
// types and values out of bounds are all refused, with file:line:column and what is allowed.
func ParseManifest(file string, text []byte) (Manifest, error) {
	p := &manifestParser{file: file, text: text, dec: json.NewDecoder(bytes.NewReader(text)), at: map[string]int64{}}
	var m Manifest
	if err := p.manifest(&m); err != nil {
		return Manifest{}, err
	}
	if err := m.Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), " ")
		return Manifest{}, p.fail(p.offsetOf(field), "%v", err)
	}
	return m, nil
}

// manifestParser walks the document token by token, because encoding/json neither says where an
// unknown key stands nor minds one that stands twice.
type manifestParser struct {
	file string
	text []byte
	dec  *json.Decoder
	at   map[string]int64 // where the key of each field stands, by path
}

func (p *manifestParser) fail(offset int64, format string, args ...any) error {
	return sourceError(p.file, p.text, offset, format, args...)
}

// offsetOf is where the field, or the nearest object around it, stands.
func (p *manifestParser) offsetOf(field string) int64 {
	for {
		if at, ok := p.at[field]; ok {
			return at
		}
		i := strings.LastIndexByte(field, '.')
		if i < 0 {
			return 0
		}
		field = field[:i]
	}
}

func (p *manifestParser) manifest(m *Manifest) error {
	l, r, life := &m.Limits, &m.Retries, &m.Lifetime
	err := p.object("", fields{
		"mode":   p.value("a string", &m.Mode),
		"vars":   p.strings(&m.Vars),
		"queues": p.strings(&m.Queues),
		"limits": p.fixed(fields{
			"cpuMs": p.number(&l.CPU), "wallMs": p.number(&l.Wall), "heapMB": p.number(&l.HeapMB),
			"subrequests": p.number(&l.Subrequests), "sends": p.number(&l.Sends), "logBytes": p.number(&l.LogBytes),
		}),
		"retries": p.fixed(fields{
			"maxAttempts": p.number(&r.MaxAttempts), "initialMs": p.number(&r.Initial),
			"factor": p.number(&r.Factor), "maxMs": p.number(&r.Max),
			"jitter": p.value("a number", &r.Jitter), "fetch": p.value("true or false", &r.Fetch),
		}),
		"schedules":    p.schedules(&m.Schedules),
		"onDeadLetter": p.onDeadLetter(&m.OnDead),
		"idempotent":   p.value("true or false", &m.Idempotent),
		"lifetime": p.fixed(fields{
			"idleMs": p.number(&life.Idle), "ttlMs": p.number(&life.TTL), "requests": p.number(&life.Requests),
		}),
	}, nil)
	if err != nil {
		return err
	}
	at := p.next()
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return p.fail(at, "something follows the manifest's closing brace")
	}
	return nil
}

// field reads the value of a key; path is the key's.
type field func(path string) error

type fields map[string]field

// next is the offset of the next token: separators are not yet read by the decoder.
func (p *manifestParser) next() int64 {
	i := p.dec.InputOffset()
	for i < int64(len(p.text)) && bytes.IndexByte([]byte(" \t\r\n,:"), p.text[i]) >= 0 {
		i++
	}
	return i
}

// object reads an object whose keys are known, or, with rest, any.
func (p *manifestParser) object(path string, known fields, rest field) error {
	at := p.next()
	what := "the manifest"
	if path != "" {
		what = path
	}
	if tok, err := p.dec.Token(); err != nil {
		return p.syntax(err)
	} else if tok != json.Delim('{') {
		return p.fail(at, "%s is not an object in braces", what)
	}
	for p.dec.More() {
		at := p.next()
		tok, err := p.dec.Token()
		if err != nil {
			return p.syntax(err)
		}
		key := tok.(string) // the decoder lets nothing else be a key
		full := strings.TrimPrefix(path+"."+key, ".")
		if _, twice := p.at[full]; twice {
			return p.fail(at, "key %q stands twice", full)
		}
		p.at[full] = at
		read := rest
		if known != nil {
			read = known[key]
		}
		if read == nil {
			return p.fail(at, "unknown key %q: %s may have %s", full, what, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := read(full); err != nil {
			return err
		}
	}
	if _, err := p.dec.Token(); err != nil {
		return p.syntax(err)
	}
	return nil
}

func (p *manifestParser) fixed(known fields) field {
	return func(path string) error { return p.object(path, known, nil) }
}

// value reads into a value of a simple type; want names the type for people.
func (p *manifestParser) value(want string, into any) field {
	return func(path string) error {
		at := p.next()
		var raw json.RawMessage
		if err := p.dec.Decode(&raw); err != nil {
			return p.syntax(err)
		}
		if string(raw) == "null" || json.Unmarshal(raw, into) != nil {
			return p.fail(at, "%s is %s: it is %s", path, shorten(raw), want)
		}
		return nil
	}
}

// number reads a number that is above 0: in a manifest's types 0 is what was left out.
func (p *manifestParser) number(into any) field {
	want := "a whole number"
	if _, ok := into.(*float64); ok {
		want = "a number"
	}
	read := p.value(want, into)
	return func(path string) error {
		at := p.next()
		if err := read(path); err != nil {
			return err
		}
		if reflect.ValueOf(into).Elem().IsZero() {
			return p.fail(at, "%s is 0: it is above 0; without it the default holds", path)
		}
		return nil
	}
}

// onDeadLetter reads who is told of dead letters.
func (p *manifestParser) onDeadLetter(into **events.DeadHook) field {
	return func(path string) error {
		h := &events.DeadHook{}
		*into = h
		return p.object(path, fields{
			"worker": p.value("a string", &h.Worker), "subject": p.value("a string", &h.Subject),
			"jetStream": p.value("true or false", &h.JetStream),
		}, nil)
	}
}

// strings reads an object of strings.
func (p *manifestParser) strings(into *map[string]string) field {
	return func(path string) error {
		*into = map[string]string{}
		return p.object(path, nil, func(path string) error {
			var s string
			if err := p.value("a string", &s)(path); err != nil {
				return err
			}
			_, name, _ := strings.Cut(path, ".")
			(*into)[name] = s
			return nil
		})
	}
}

func (p *manifestParser) syntax(err error) error {
	offset := p.dec.InputOffset()
	var se *json.SyntaxError
	switch {
	case errors.As(err, &se) && se.Offset > offset:
		// Inside a value the error counts the bytes read, the wrong one too; between values it does not.
		offset = se.Offset - 1
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return p.fail(int64(len(p.text)), "the manifest ends too early")
	}
	return p.fail(offset, "this is not JSON: %v", err)
}

// shorten keeps a long value out of a message.
func shorten(raw []byte) string {
	if len(raw) > 60 {
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(string(raw[:60]), ""), len(raw))
	}
	return string(raw)
}
