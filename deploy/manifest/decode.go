package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// decoder reads a tree of nodes into structs with json tags. It refuses unknown keys, null, and values of another type,
// and says where each stands.
type decoder struct {
	*document
	at map[string]int64 // offset of each key that was read, by its path
	// json gets the JSON texts of vars that are no strings. nil = vars are strings.
	json map[string]string
	// scalars: numbers, booleans and null are vars, too. Else they are refused: whoever writes PORT: 8080 may want a
	// string.
	scalars bool
	// other is asked about a key that the struct does not have. It reports whether the key is taken care of.
	other func(full string, m member) (bool, error)
}

func newDecoder(d *document) *decoder {
	return &decoder{document: d, at: map[string]int64{}, other: func(string, member) (bool, error) { return false, nil }}
}

// failAt puts err, whose text begins with the path of a field, where this field or the nearest object around it stands.
func (d *decoder) failAt(err error) error {
	field, _, _ := strings.Cut(err.Error(), " ")
	return d.fail(d.place(field), "%v", err)
}

// place is the offset of a field or of the nearest object around it.
func (d *decoder) place(field string) int64 {
	for {
		if at, ok := d.at[field]; ok {
			return at
		}
		i := strings.LastIndexByte(field, '.')
		if i < 0 {
			return 0
		}
		field = field[:i]
	}
}

// value reads n into v. The type of v says what is allowed.
func (d *decoder) value(path string, n *node, v reflect.Value) error {
	switch {
	case v.Type() == reflect.TypeFor[workers.Millis](), v.Type() == reflect.TypeFor[seconds]():
		return d.duration(path, n, v)
	case v.Type() == reflect.TypeFor[*workers.Millis](): // may be 0
		v.Set(reflect.New(v.Type().Elem()))
		return d.duration(path, n, v)
	case v.Type() == reflect.TypeFor[workers.Bytes]():
		return d.size(path, n, v)
	case v.Type() == reflect.TypeFor[workers.PublicPaths]() && n.kind == list: // of every method
		paths := reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.MakeMap(v.Type()))
		err := d.list(path+"."+workers.AnyMethod, n, paths)
		v.SetMapIndex(reflect.ValueOf(workers.AnyMethod), paths)
		return err
	case v.Type() == reflect.TypeFor[pathsOrAll]() && n.kind == boolean:
		if n.scalar == "true" {
			v.Set(reflect.ValueOf(pathsOrAll{"/*"}))
		}
		return nil
	case v.Kind() == reflect.Struct && n.kind != object && short(v).IsValid():
		return d.short(path, n, short(v))
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(path, n, v.Elem())
	case v.Kind() == reflect.Struct:
		known := map[string]reflect.Value{}
		jsonFields(v, known)
		return d.object(path, n, known, func(m member, full string) error { return d.value(full, m.value, known[m.key]) })
	case v.Kind() == reflect.Map && path == "vars" && d.json != nil:
		v.Set(reflect.MakeMap(v.Type()))
		return d.object(path, n, nil, func(m member, full string) error { return d.variable(m, full, v) })
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		return d.object(path, n, nil, func(m member, full string) error {
			element := reflect.New(v.Type().Elem()).Elem()
			err := d.value(full, m.value, element)
			v.SetMapIndex(reflect.ValueOf(m.key), element)
			return err
		})
	case v.Kind() == reflect.Slice:
		return d.list(path, n, v)
	}
	return d.simple(path, n, v)
}

// short is the field of the struct v that a value which is no object means; the zero Value if there is none.
func short(v reflect.Value) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("manifest") == "short" {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// short reads a value that stands for a field of an object. A text is a list of one.
func (d *decoder) short(path string, n *node, v reflect.Value) error {
	if v.Kind() == reflect.Slice && n.kind != list {
		n = &node{kind: list, at: n.at, items: []*node{n}}
	}
	return d.value(path, n, v)
}

// jsonFields collects the fields of the struct v by the names in their tags. Those of embedded structs are among them.
func jsonFields(v reflect.Value, into map[string]reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			jsonFields(v.Field(i), into)
			continue
		}
		if v.Type().Field(i).Tag.Get("manifest") != "-" {
			into[jsonName(v.Type().Field(i))] = v.Field(i)
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// object reads an object, and calls member for each key. With known, no other keys are allowed.
func (d *decoder) object(path string, n *node, known map[string]reflect.Value,
	member func(m member, full string) error) error {
	what := d.noun
	if path != "" {
		what = path
	}
	if n.kind != object {
		return d.fail(n.at, "%s is not an object in braces", what)
	}
	for _, m := range n.members {
		full := strings.TrimPrefix(path+"."+m.key, ".")
		d.at[full] = m.at
		if _, ok := known[m.key]; known != nil && !ok {
			switch taken, err := d.other(full, m); {
			case err != nil:
				return err
			case !taken:
				return d.fail(m.at, "unknown key %q: %s may have %s", full, what, strings.Join(slices.Sorted(maps.Keys(known)),
					", "))
			}
			continue
		}
		if err := member(m, full); err != nil {
			return err
		}
	}
	return nil
}

// variable reads a var into vars, or into d.json when it is no string.
func (d *decoder) variable(m member, full string, vars reflect.Value) error {
	switch k := m.value.kind; {
	case k == text:
		vars.SetMapIndex(reflect.ValueOf(m.key), reflect.ValueOf(m.value.scalar))
		return nil
	case k != object && k != list && !d.scalars:
		return d.fail(m.value.at, "%s is %s: it is a string, an object or a list", full, m.value)
	}
	var b strings.Builder
	err := d.writeJSON(&b, full, m.value)
	d.json[m.key] = b.String()
	return err
}

// writeJSON writes the JSON text of a value, without white space.
func (d *decoder) writeJSON(b *strings.Builder, path string, n *node) error {
	switch n.kind {
	case object:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, m.key)
			b.WriteByte(':')
			if err := d.writeJSON(b, path+"."+m.key, m.value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := d.writeJSON(b, fmt.Sprintf("%s[%d]", path, i), item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case text:
		writeText(b, n.scalar)
	case number:
		if !jsonNumber.MatchString(n.scalar) {
			return d.fail(n.at, "%s is %s: write a number as JSON has it", path, n)
		}
		b.WriteString(n.scalar)
	case boolean:
		b.WriteString(n.scalar)
	case null:
		b.WriteString("null")
	}
	return nil
}

func writeText(b *strings.Builder, s string) {
	quoted, _ := json.Marshal(s) // a string: no error
	b.Write(quoted)
}

// list reads a list. The path of an element is path[index].
func (d *decoder) list(path string, n *node, v reflect.Value) error {
	if n.kind != list {
		return d.fail(n.at, "%s is not a list in brackets", path)
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i, item := range n.items {
		element := reflect.New(v.Type().Elem()).Elem()
		full := fmt.Sprintf("%s[%d]", path, i)
		d.at[full] = item.at
		if err := d.value(full, item, element); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	return nil
}

// simple reads a string, a boolean or a number. A number is above 0, because a zero field means that it was left out;
// only a pointer can hold 0.
func (d *decoder) simple(path string, n *node, v reflect.Value) error {
	target := v
	if v.Kind() == reflect.Pointer {
		target = reflect.New(v.Type().Elem()).Elem()
	}
	want, isNumber, ok := "a whole number", false, false
	switch target.Kind() {
	case reflect.String:
		want, ok = "a string", n.kind == text
		target.SetString(n.scalar)
	case reflect.Bool:
		want, ok = "true or false", n.kind == boolean
		target.SetBool(n.scalar == "true")
	case reflect.Float64:
		want, isNumber = "a number", true
		var f float64
		f, ok = n.float()
		target.SetFloat(f)
	default:
		isNumber = true
		var i int64
		i, ok = n.whole()
		ok = ok && !target.OverflowInt(i)
		target.SetInt(i)
	}
	if !ok {
		return d.fail(n.at, "%s is %s: it is %s", path, n, want)
	}
	if v.Kind() == reflect.Pointer {
		v.Set(target.Addr())
		return nil
	}
	// a mode, a policy
	if target.Kind() == reflect.String && target.Type() != reflect.TypeFor[string]() && n.scalar == "" {
		return d.fail(n.at, "%s is empty: without it the default holds", path)
	}
	if isNumber && v.IsZero() {
		return d.fail(n.at, "%s is 0: it is above 0; without it the default holds", path)
	}
	return nil
}

// duration reads a number, of milliseconds or for seconds of seconds, or a text with a unit.
func (d *decoder) duration(path string, n *node, v reflect.Value) error {
	inSeconds := v.Type() == reflect.TypeFor[seconds]()
	unit, want := time.Millisecond, "a whole number of milliseconds"
	if inSeconds {
		unit, want = time.Second, "a whole number of seconds"
	}
	var value workers.Millis
	i, ok := n.whole()
	switch {
	case n.kind == text:
		var err error
		value, err = parseDuration(n.scalar)
		ok = err == nil
	case ok:
		ok = i >= 0 && i <= int64(maxDuration/unit)
		value = workers.Millis(time.Duration(i) * unit)
	}
	switch {
	case !ok:
		return d.fail(n.at, "%s is %s: it is %s, or %s; %s", path, n, want, durationShape, durationMore)
	case inSeconds:
		v.Set(reflect.ValueOf(seconds{value, true}))
		return nil
	case v.Kind() == reflect.Pointer:
		v.Elem().SetInt(int64(value))
		return nil
	case value == 0:
		return d.fail(n.at, "%s is 0: it is above 0; without it the default holds", path)
	}
	v.SetInt(int64(value))
	return nil
}

// jsonNumber is how every format's numbers must be written here.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (n *node) whole() (int64, bool) {
	if n.kind != number || !jsonNumber.MatchString(n.scalar) {
		return 0, false
	}
	i, err := strconv.ParseInt(n.scalar, 10, 64)
	return i, err == nil
}

func (n *node) float() (float64, bool) {
	if n.kind != number || !jsonNumber.MatchString(n.scalar) {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.scalar, 64)
	return f, err == nil
}
