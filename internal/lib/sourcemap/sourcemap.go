// Package sourcemap converts positions in a bundled module to positions in the author's files, so that stacks name the
// lines that the author wrote.
package sourcemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-sourcemap/sourcemap"
)

// Map is a parsed source map. It never changes, so any number of goroutines may use it at once. Parsing costs far more
// than a lookup: parse once per version of a worker.
type Map struct{ consumer *sourcemap.Consumer }

// Position is a place in one of the author's files, both numbers from 1.
type Position struct {
	File         string
	Line, Column int
}

// String is file:line:column.
func (p Position) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Parse reads a version 3 source map. It does not panic for any bytes.
func Parse(sourceMap []byte) (m *Map, err error) {
	if len(sourceMap) == 0 {
		return nil, errors.New("source map is empty")
	}
	// The library trusts its input: a section without a map dereferences nil.
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("source map: %v", r)
		}
	}()
	c, err := sourcemap.Parse("", sourceMap)
	if err != nil {
		return nil, fmt.Errorf("source map: %w", err)
	}
	return &Map{c}, nil
}

// Position is the position in the author's files of the character at line and column of the bundle (both from 1, as V8
// counts). ok is false when the map does not have it. A nil Map has no positions.
func (m *Map) Position(line, column int) (p Position, ok bool) {
	if m == nil || line < 1 || column < 1 {
		return Position{}, false
	}
	// The library does not check an index into the sources.
	defer func() {
		if recover() != nil {
			p, ok = Position{}, false
		}
	}()
	// The library counts columns from 0 and lines from 1.
	file, _, srcLine, srcColumn, ok := m.consumer.Source(line, column-1)
	if !ok || file == "" || srcLine < 1 || srcColumn < 0 {
		return Position{}, false
	}
	return Position{file, srcLine, srcColumn + 1}, true
}

// Text is the text of one of the author's files, as the map has it; "" = it has none.
func (m *Map) Text(file string) string { return m.consumer.SourceContent(file) }

// Texts are the texts of the author's files that a source map has, by their names. A map that cannot be read has none.
// The cost is linear in the size of the map.
func Texts(sourceMap []byte) map[string]string {
	var m struct {
		Sources  []string  `json:"sources"`
		Contents []*string `json:"sourcesContent"`
	}
	texts := map[string]string{}
	if json.Unmarshal(sourceMap, &m) != nil {
		return texts
	}
	for i, name := range m.Sources {
		if name != "" && i < len(m.Contents) && m.Contents[i] != nil {
			texts[name] = *m.Contents[i]
		}
	}
	return texts
}

// Stack rewrites the frames of a V8 stack that are in file, the name of the bundle, to positions in the author's files.
// Other frames and all other text stay as they are.
func (m *Map) Stack(file, stack string) string {
	if m == nil || file == "" || !strings.Contains(stack, file) {
		return stack
	}
	var b strings.Builder
	b.Grow(len(stack) + len(stack)/8)
	for _, line := range strings.SplitAfter(stack, "\n") {
		if !isFrame(line) {
			b.WriteString(line)
			continue
		}
		m.frame(&b, file, line)
	}
	return b.String()
}

// MapStack is Parse and Stack for one use. If the source map cannot be read, it returns the stack as it is.
func MapStack(sourceMap []byte, file, stack string) string {
	m, err := Parse(sourceMap)
	if err != nil {
		return stack
	}
	return m.Stack(file, stack)
}

// isFrame reports whether the line is V8's "    at …".
func isFrame(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " \t"), "at ")
}

// frame writes one line and maps each file:line:column in it. Usually there is one; a frame inside eval has two.
func (m *Map) frame(b *strings.Builder, file, line string) {
	for {
		i := strings.Index(line, file)
		if i < 0 {
			b.WriteString(line)
			return
		}
		rest := line[i+len(file):]
		l, column, n := parsePosition(rest)
		p, ok := Position{}, false
		if n > 0 && startsName(line, i) {
			p, ok = m.Position(l, column)
		}
		b.WriteString(line[:i])
		if ok {
			b.WriteString(p.String())
		} else {
			b.WriteString(line[i : i+len(file)+n])
		}
		line = rest[n:]
	}
}

// startsName reports whether a file name may begin at line[i]: "lib/hello.js" does not name hello.js.
func startsName(line string, i int) bool {
	return i > 0 && (line[i-1] == ' ' || line[i-1] == '(')
}

// parsePosition reads ":line:column" at the beginning of s. n is its length; 0 = there is none.
func parsePosition(s string) (line, column, n int) {
	line, n1 := parseNumber(s)
	if n1 == 0 {
		return 0, 0, 0
	}
	column, n2 := parseNumber(s[n1:])
	if n2 == 0 {
		return 0, 0, 0
	}
	return line, column, n1 + n2
}

// parseNumber reads a colon and up to nine digits. More digits are not a position.
func parseNumber(s string) (v, n int) {
	if s == "" || s[0] != ':' {
		return 0, 0
	}
	for n = 1; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		if n > 9 {
			return 0, 0
		}
		v = v*10 + int(s[n]-'0')
	}
	if n == 1 {
		return 0, 0
	}
	return v, n
}
