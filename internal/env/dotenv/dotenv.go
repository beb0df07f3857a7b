// Package dotenv reads files of the form NAME=VALUE, as the npm packages dotenv and dotenv-expand do. wrangler reads
// .dev.vars by the first, and .env by both.
//
// The Go packages for such files replace $NAME in other places than dotenv-expand, and quote the file in their errors.
package dotenv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxFile is the largest file, bytes.
const MaxFile = 1 << 20

// Error says which line is wrong. It never quotes the line: it may have a secret.
type Error struct {
	Line int // from 1
	Text string
}

// Error is the text.
func (e *Error) Error() string { return e.Text }

// Vars are the values of one file or more.
type Vars struct {
	names  []string // in the order in which they first stood there
	values map[string]string
}

// Map returns the values by name. It is the caller's.
func (v *Vars) Map() map[string]string { return maps.Clone(v.values) }

// Add adds the values of a later file, which win.
func (v *Vars) Add(later *Vars) {
	for _, name := range later.names {
		v.set(name, later.values[name])
	}
}

func (v *Vars) set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

// Parse reads a file. A name that stands twice has its last value. The error is an *Error.
//
// A value may stand in ' " or `, and then have several lines; between " the sequences \n and \r are line ends. Any
// other value ends before # or with the line, without white space around it. Nothing in a value is replaced.
func Parse(text string) (*Vars, error) {
	if len(text) > MaxFile {
		return nil, &Error{1, fmt.Sprintf("the file has more than %d bytes", MaxFile)}
	}
	text = strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\r", "\n")
	v := &Vars{}
	for line := 1; text != ""; {
		name, value, rest, err := next(text)
		if err != "" {
			return nil, &Error{line, err}
		}
		if name != "" {
			v.set(name, value)
		}
		line += strings.Count(text[:len(text)-len(rest)], "\n")
		text = rest
	}
	return v, nil
}

// next reads the first line of text, or the lines of the first value. name is empty for a comment or an empty line.
func next(text string) (name, value, rest, fault string) {
	line, after, _ := strings.Cut(text, "\n")
	if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
		return "", "", after, ""
	}
	begin := strings.TrimLeft(line, " \t")
	if export, ok := strings.CutPrefix(begin, "export"); ok && strings.TrimLeft(export, " \t") != export {
		begin = strings.TrimLeft(export, " \t")
	}
	end := strings.IndexFunc(begin, func(r rune) bool { return !inName(r) })
	if end <= 0 {
		return "", "", "", "a line is NAME=VALUE, or a comment that begins with #"
	}
	name, begin = begin[:end], begin[end:]
	colon := strings.HasPrefix(begin, ": ") || strings.HasPrefix(begin, ":\t")
	if begin = strings.TrimLeft(begin, " \t"); !strings.HasPrefix(begin, "=") && !colon {
		return "", "", "", "there is no = after the name"
	}
	begin = strings.TrimLeft(begin[1:], " \t")
	// The value goes on behind this line when it is quoted.
	from := len(line) - len(begin)
	if value, rest, ok := quoted(text[from:]); ok {
		return name, value, rest, ""
	}
	value, _, _ = strings.Cut(begin, "#")
	value = strings.TrimSpace(value)
	double := strings.HasPrefix(value, `"`)
	if n := len(value); n >= 2 && value[0] == value[n-1] && strings.IndexByte(quotes, value[0]) >= 0 {
		value = value[1 : n-1]
	}
	if double {
		value = lineEnds.Replace(value)
	}
	return name, value, after, ""
}

var lineEnds = strings.NewReplacer(`\n`, "\n", `\r`, "\r")

func inName(r rune) bool {
	return r == '_' || r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

const quotes = "'\"`"

// quoted reads a value in quotes from the beginning of text. ok is false when there is none, or when something other
// than a comment follows it. A quote behind a backslash ends the value only if no other one does.
func quoted(text string) (value, rest string, ok bool) {
	if text == "" || strings.IndexByte(quotes, text[0]) < 0 {
		return "", "", false
	}
	var ends []int // escaped quotes, then the first one that is not
	for i := 1; i < len(text); i++ {
		if text[i] != text[0] {
			continue
		}
		ends = append(ends, i)
		if text[i-1] != '\\' {
			break
		}
	}
	for _, end := range slices.Backward(ends) {
		tail, rest, _ := strings.Cut(text[end+1:], "\n")
		if tail = strings.TrimSpace(tail); tail != "" && tail[0] != '#' {
			continue
		}
		if value = text[1:end]; text[0] == '"' {
			value = lineEnds.Replace(value)
		}
		return value, rest, true
	}
	return "", "", false
}
