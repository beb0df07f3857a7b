package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"unicode"
)

// decodeRequest decodes the JSON of a control request. No body is an empty object. The error names the wrong field and
// what is allowed.
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
