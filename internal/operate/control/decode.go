package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// decodeRequest decodes the JSON of a control request into a struct, and checks the bounds of its fields. No body is an
// empty object. The error names the wrong field and what is allowed.
func decodeRequest(data []byte, into any) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	if data[0] != '{' {
		return refused("the request is not a JSON object")
	}
	if err := checkObjects(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badField(err, into)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refused("something follows the JSON object of the request")
	}
	return checkFields(reflect.ValueOf(into).Elem())
}

// encodeJSON is JSON without the escapes for HTML: JSON that others have stored stays as it is.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func badField(err error, into any) error {
	var wrong *json.UnmarshalTypeError
	text := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case strings.HasPrefix(text, "unknown field"):
		return refused("%s: a request may have %s", text, strings.Join(fieldNames(reflect.TypeOf(into).Elem()), ", "))
	case errors.As(err, &wrong):
		return refused("field %q is a JSON %s: it is %s", keyOf(wrong.Field), wrong.Value, kindOfJSON(wrong.Type))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refused("the request is not JSON: it ends too early")
	}
	return refused("the request is not JSON: %s", text)
}

// keyOf is a field as the request has it, without the names of embedded structs.
func keyOf(field string) string {
	for {
		embedded, rest, ok := strings.Cut(field, ".")
		if !ok || embedded == "" || !unicode.IsUpper(rune(embedded[0])) {
			return field
		}
		field = rest
	}
}

// fieldNames returns the JSON keys of a struct, with those of embedded structs.
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

// Bounds of a request, whatever its endpoint does with it. An endpoint may have narrower ones. Bytes in base64, a raw
// value and the fields of other rooms, such as the spec of a worker, have bounds of their own.
const (
	// maxControlText is how many bytes a text of a request has: a name, a cursor, an expression.
	maxControlText = 4096
	// maxControlEntries is how many entries a list or an object of a request has, such as the ids of letters.
	maxControlEntries = 10_000
	// maxControlObjects is how many objects and lists a request has in all: "{}" has two bytes, and what is made of it a
	// hundred.
	maxControlObjects = 20_000
)

// checkObjects refuses a request of which a decoder would make much more than it has bytes.
func checkObjects(data []byte) error {
	objects, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '{' || c == '['):
			objects++
		}
	}
	if objects > maxControlObjects {
		return refused("the request has %d objects and lists: it has at most %d", objects, maxControlObjects)
	}
	return nil
}

// checkFields checks the bounds of the fields of a request, which is a struct. A field has another bound than the ones
// above by its tag `most`, and none with "-": then only the size of a message bounds it.
func checkFields(request reflect.Value) error {
	for i := range request.NumField() {
		f, v := request.Type().Field(i), request.Field(i)
		if f.Anonymous && v.Kind() == reflect.Struct {
			if err := checkFields(v); err != nil {
				return err
			}
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || !f.IsExported() || f.Tag.Get("most") == "-" {
			continue
		}
		if err := checkField(name, f.Tag.Get("most"), v); err != nil {
			return err
		}
	}
	return nil
}

// checkField checks one field. most is its tag, or "".
func checkField(name, most string, v reflect.Value) error {
	bound := func(otherwise int) int {
		if n, err := strconv.Atoi(most); err == nil {
			return n
		}
		return otherwise
	}
	switch v.Kind() {
	case reflect.String:
		if most := bound(maxControlText); v.Len() > most {
			return wrongField(name, " has %d bytes: it has at most %d", v.Len(), most)
		}
	case reflect.Map:
		if most := bound(maxControlEntries); v.Len() > most {
			return wrongField(name, " has %d entries: it has at most %d", v.Len(), most)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // of base64, or raw
			return nil
		}
		if most := bound(maxControlEntries); v.Len() > most {
			return wrongField(name, " has %d entries: it has at most %d", v.Len(), most)
		}
		for i := range v.Len() {
			if err := checkField(name, "", v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkField(name, most, v.Elem())
		}
	case reflect.Struct:
		if v.Type().PkgPath() == reflect.TypeFor[None]().PkgPath() {
			return checkFields(v)
		}
	}
	return nil
}
