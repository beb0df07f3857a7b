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
)

// manifestDecoder reads a JSON document token by token into a struct with json tags. It refuses unknown keys, doubled
// keys and null, and says where each stands: encoding/json does neither.
type manifestDecoder struct {
	file string
	text []byte
	dec  *json.Decoder
	at   map[string]int64 // offset of each key, by its path
}

func newManifestDecoder(file string, text []byte) *manifestDecoder {
	return &manifestDecoder{file: file, text: text, dec: json.NewDecoder(bytes.NewReader(text)), at: map[string]int64{}}
}

func (d *manifestDecoder) fail(offset int64, format string, args ...any) error {
	return sourceError(d.file, d.text, offset, format, args...)
}

// failAt puts err, whose text begins with the path of a field, where this field or the nearest object around it stands.
func (d *manifestDecoder) failAt(err error) error {
	field, _, _ := strings.Cut(err.Error(), " ")
	for {
		if at, ok := d.at[field]; ok {
			return d.fail(at, "%v", err)
		}
		i := strings.LastIndexByte(field, '.')
		if i < 0 {
			return d.fail(0, "%v", err)
		}
		field = field[:i]
	}
}

// document reads the whole document into the struct that into points to.
func (d *manifestDecoder) document(into any) error {
	if err := d.value("", reflect.ValueOf(into).Elem()); err != nil {
		return err
	}
	at := d.next()
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return d.fail(at, "something follows the manifest's closing brace")
	}
	return nil
}

// value reads the next value into v. The type of v says what is allowed.
func (d *manifestDecoder) value(path string, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(path, v.Elem())
	case v.Kind() == reflect.Struct:
		known := map[string]reflect.Value{}
		jsonFields(v, known)
		return d.object(path, known, func(full, key string) error { return d.value(full, known[key]) })
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		return d.object(path, nil, func(full, key string) error {
			element := reflect.New(v.Type().Elem()).Elem()
			err := d.value(full, element)
			v.SetMapIndex(reflect.ValueOf(key), element)
			return err
		})
	case v.Kind() == reflect.Slice:
		return d.list(path, v)
	}
	return d.simple(path, v)
}

// jsonFields collects the fields of the struct v by the names in their tags. Those of embedded structs are among them.
func jsonFields(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			jsonFields(v.Field(i), into)
			continue
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		into[name] = v.Field(i)
	}
}

// next is the offset of the next token: the decoder has not yet read the separators before it.
func (d *manifestDecoder) next() int64 {
	i := d.dec.InputOffset()
	for i < int64(len(d.text)) && bytes.IndexByte([]byte(" \t\r\n,:"), d.text[i]) >= 0 {
		i++
	}
	return i
}

// object reads an object, and calls member for the value of each key. With known, no other keys are allowed.
func (d *manifestDecoder) object(path string, known map[string]reflect.Value, member func(full, key string) error) error {
	at := d.next()
	what := "the manifest"
	if path != "" {
		what = path
	}
	if tok, err := d.dec.Token(); err != nil {
		return d.syntax(err)
	} else if tok != json.Delim('{') {
		return d.fail(at, "%s is not an object in braces", what)
	}
	for d.dec.More() {
		at := d.next()
		tok, err := d.dec.Token()
		if err != nil {
			return d.syntax(err)
		}
		key := tok.(string) // the decoder allows nothing else as a key
		full := strings.TrimPrefix(path+"."+key, ".")
		if _, twice := d.at[full]; twice {
			return d.fail(at, "key %q stands twice", full)
		}
		d.at[full] = at
		if _, ok := known[key]; known != nil && !ok {
			return d.fail(at, "unknown key %q: %s may have %s", full, what, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := member(full, key); err != nil {
			return err
		}
	}
	return d.end()
}

// list reads an array. The path of an element is path[index].
func (d *manifestDecoder) list(path string, v reflect.Value) error {
	at := d.next()
	if tok, err := d.dec.Token(); err != nil {
		return d.syntax(err)
	} else if tok != json.Delim('[') {
		return d.fail(at, "%s is not a list in brackets", path)
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for d.dec.More() {
		element := reflect.New(v.Type().Elem()).Elem()
		item := fmt.Sprintf("%s[%d]", path, v.Len())
		d.at[item] = d.next()
		if err := d.value(item, element); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	return d.end()
}

// end reads the bracket that closes an object or a list.
func (d *manifestDecoder) end() error {
	if _, err := d.dec.Token(); err != nil {
		return d.syntax(err)
	}
	return nil
}

// simple reads a string, a boolean or a number. A number is above 0, because a zero field means that it was left out;
// only a pointer can hold 0.
func (d *manifestDecoder) simple(path string, v reflect.Value) error {
	at := d.next()
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return d.syntax(err)
	}
	want, number := "a whole number", false
	kind := v.Kind()
	if kind == reflect.Pointer {
		kind = v.Type().Elem().Kind()
	}
	switch kind {
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Float64:
		want, number = "a number", true
	default:
		number = true
	}
	if string(raw) == "null" || json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return d.fail(at, "%s is %s: it is %s", path, shorten(raw), want)
	}
	if number && v.IsZero() {
		return d.fail(at, "%s is 0: it is above 0; without it the default holds", path)
	}
	return nil
}

func (d *manifestDecoder) syntax(err error) error {
	offset := d.dec.InputOffset()
	var se *json.SyntaxError
	switch {
	case errors.As(err, &se) && se.Offset > offset:
		// Inside a value the error counts the bytes read, the wrong one included. Between values it does not.
		offset = se.Offset - 1
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return d.fail(int64(len(d.text)), "the manifest ends too early")
	}
	return d.fail(offset, "this is not JSON: %v", err)
}

// shorten keeps a long value out of a message.
func shorten(raw []byte) string {
	if len(raw) > 60 {
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(string(raw[:60]), ""), len(raw))
	}
	return string(raw)
}
