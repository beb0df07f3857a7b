package assets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// pattern matches paths: :name is a piece of a segment that is not empty, * is any text. It compares segment by
// segment, from the left up to the *, and from the right down to it. So its time grows with the length of the path
// only, whatever the pattern is.
type pattern struct {
	exact  string      // events.Path.Canonical of the only path; "" = it has a * or :name
	head   [][]piece   // segments before that of the *, or all
	tail   [][]piece   // those after it
	around *[2][]piece // what stands before and after the * in its segment; nil = there is no *
}

// piece is a part of a segment: a :name, or a literal text, escaped as workers.Path.Canonical.
type piece struct{ name, literal string }

var placeholder = regexp.MustCompile(`:[A-Za-z][A-Za-z0-9_]*|\*`)

// mayHavePlaceholder tells, without a regular expression, which texts placeholder can match. Most texts of a long list
// have no placeholder.
func mayHavePlaceholder(text string) bool { return strings.ContainsAny(text, ":*") }

// splat is the name of what * is.
const splat = "splat"

// maxPlaceholders is the most * and :name of a pattern.
const maxPlaceholders = 16

// newPattern reads the path of a rule.
func newPattern(text string) (*pattern, error) {
	switch {
	case !strings.HasPrefix(text, "/"):
		return nil, fmt.Errorf("%.100q begins with /: a rule is for every host", text)
	case len(text) > MaxPath:
		return nil, fmt.Errorf("the path has at most %d bytes", MaxPath)
	case strings.ContainsAny(text, "?#"):
		return nil, fmt.Errorf("%.100q has no ? and no #: only paths are compared", text)
	case strings.Contains(text, "%") && badEscape.MatchString(text):
		return nil, fmt.Errorf("%.100q is no path: %%XX are two hex digits", text)
	}
	if !mayHavePlaceholder(text) {
		return &pattern{exact: workers.NewPath(text).Canonical()}, nil
	}
	found := placeholder.FindAllString(text, maxPlaceholders+1)
	if len(found) == 0 {
		return &pattern{exact: workers.NewPath(text).Canonical()}, nil
	}
	if len(found) > maxPlaceholders && !guard.FileRules.Off() {
		return nil, fmt.Errorf("%.100q has more than %d placeholders", text, maxPlaceholders)
	}
	for i, name := range found {
		if slices.Contains(found[:i], name) {
			return nil, fmt.Errorf("%.100q has %s twice", text, name)
		}
	}
	p := &pattern{}
	if sideBySide.MatchString(text) {
		return nil, fmt.Errorf("%.100q has two placeholders side by side: where one ends is unknown", text)
	}
	before, after, has := strings.Cut(text, "*")
	if p.head = segmentsOf(before); !has {
		return p, nil
	}
	last := len(p.head) - 1
	p.tail = segmentsOf("/" + after)
	p.around = &[2][]piece{p.head[last], p.tail[0]}
	p.head, p.tail = p.head[:last], p.tail[1:]
	return p, nil
}

var badEscape = regexp.MustCompile(`%([^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)`)

var sideBySide = regexp.MustCompile(`:[A-Za-z][A-Za-z0-9_]*[:*]|\*:[A-Za-z]`)

// segmentsOf are the segments of a text that begins with /.
func segmentsOf(text string) (segments [][]piece) {
	for segment := range strings.SplitSeq(text[1:], "/") {
		var pieces []piece
		end := 0
		for _, at := range placeholder.FindAllStringIndex(segment, -1) {
			if at[0] > end {
				pieces = append(pieces, piece{literal: workers.PathKey(segment[end:at[0]])})
			}
			pieces = append(pieces, piece{name: segment[at[0]+1 : at[1]]})
			end = at[1]
		}
		if end < len(segment) {
			pieces = append(pieces, piece{literal: workers.PathKey(segment[end:])})
		}
		segments = append(segments, pieces)
	}
	return segments
}

// values are what the placeholders of a pattern are, escaped as workers.Path.Canonical.
type values []struct{ name, value string }

func (v *values) add(name, value string) {
	*v = append(*v, struct{ name, value string }{name, value})
}

// MaxMatched is the longest path that a rule can match, and at which a file can be: bytes, escaped.
const MaxMatched = 4096

// match returns what the placeholders are. ok is false if the path, which is workers.Path.Canonical, does not match.
func (p *pattern) match(path string) (v values, ok bool) {
	if p.exact != "" {
		return nil, p.exact == path
	}
	rest := path
	for _, segment := range p.head {
		var text string
		if rest == "" {
			return nil, false
		}
		if text, rest = cutFirst(rest); !whole(segment, text, &v) {
			return nil, false
		}
	}
	if p.around == nil {
		return v, rest == ""
	}
	for i := range p.tail {
		var text string
		at := strings.LastIndexByte(rest, '/')
		if at < 1 { // the segment of the * begins with the first /
			return nil, false
		}
		if rest, text = rest[:at], rest[at+1:]; !whole(p.tail[len(p.tail)-1-i], text, &v) {
			return nil, false
		}
	}
	return v, p.splat(rest, &v)
}

// splat matches the segments that the * stands in.
func (p *pattern) splat(rest string, v *values) bool {
	if !strings.HasPrefix(rest, "/") {
		return false
	}
	text := rest[1:]
	text, ok := fromLeft(p.around[0], text, v)
	if !ok {
		return false
	}
	from := 1 + strings.LastIndexByte(text, '/')
	last, ok := fromRight(p.around[1], text[from:], v)
	if ok {
		v.add(splat, text[:from+len(last)])
	}
	return ok
}

// cutFirst takes the first segment of a path that begins with /. rest is "" or begins with /.
func cutFirst(path string) (segment, rest string) {
	if i := strings.IndexByte(path[1:], '/'); i >= 0 {
		return path[1 : 1+i], path[1+i:]
	}
	return path[1:], ""
}

// whole matches all of a segment. Of two names, the left one has as much as it can.
func whole(pieces []piece, text string, v *values) bool {
	if len(pieces) > 0 && pieces[0].name == "" {
		rest, ok := strings.CutPrefix(text, pieces[0].literal)
		if !ok {
			return false
		}
		pieces, text = pieces[1:], rest
	}
	rest, ok := fromRight(pieces, text, v)
	return ok && rest == ""
}

// fromRight matches pieces at the end of a text within a segment, and returns what is left of it. A name that comes
// first has all that is left.
func fromRight(pieces []piece, text string, v *values) (rest string, ok bool) {
	for n := len(pieces); n > 0; n = len(pieces) {
		last := pieces[n-1]
		switch {
		case last.name == "":
			at := len(text) - len(last.literal)
			if !strings.HasSuffix(text, last.literal) || inEscape(text, at) {
				return "", false
			}
			pieces, text = pieces[:n-1], text[:at]
		case text == "":
			return "", false
		case n == 1:
			v.add(last.name, text)
			return "", true
		default:
			literal := pieces[n-2].literal
			at := lastLiteral(text[:len(text)-1], literal)
			if at < 0 {
				return "", false
			}
			v.add(last.name, text[at+len(literal):])
			pieces, text = pieces[:n-2], text[:at]
		}
	}
	return text, true
}

// fromLeft matches pieces at the beginning of a text within its first segment, and returns what is left of it. The last
// piece is no name.
func fromLeft(pieces []piece, text string, v *values) (rest string, ok bool) {
	for i := 0; i < len(pieces); i++ {
		p := pieces[i]
		if p.name == "" {
			if text, ok = strings.CutPrefix(text, p.literal); !ok {
				return "", false
			}
			continue
		}
		i++ // the literal behind it
		segment, _, _ := strings.Cut(text, "/")
		at := firstLiteral(segment, pieces[i].literal)
		if at < 1 {
			return "", false
		}
		v.add(p.name, text[:at])
		text = text[at+len(pieces[i].literal):]
	}
	return text, true
}

// inEscape reports whether a text is cut within an escape at i.
func inEscape(text string, i int) bool {
	return i > 0 && i < len(text) && text[i-1] == '%' || i > 1 && i < len(text) && text[i-2] == '%'
}

func lastLiteral(text, literal string) int {
	for end := len(text); ; {
		at := strings.LastIndex(text[:end], literal)
		if at < 0 || !inEscape(text, at) {
			return at
		}
		end = at + len(literal) - 1
	}
}

// firstLiteral is where a literal first comes, behind at least one byte.
func firstLiteral(text, literal string) int {
	for from := 1; from < len(text); {
		at := strings.Index(text[from:], literal)
		if at < 0 {
			return -1
		}
		if at += from; !inEscape(text, at) {
			return at
		}
		from = at + 1
	}
	return -1
}

var named = regexp.MustCompile(`:[A-Za-z][A-Za-z0-9_]*`)

// fill replaces placeholders by values. A name that the pattern does not have stays.
func fill(text string, v values) string {
	if len(v) == 0 {
		return text
	}
	return named.ReplaceAllStringFunc(text, func(name string) string {
		for _, one := range v {
			if one.name == name[1:] {
				return one.value
			}
		}
		return name
	})
}

// checkFilled checks a text that fill is called with. what says what it is.
func checkFilled(what, text string) error {
	switch {
	case len(text) > maxRuleLine:
		return fmt.Errorf("%s has %d bytes: at most %d are allowed", what, len(text), maxRuleLine)
	case strings.Count(text, ":") > maxPlaceholders && !guard.FileRules.Off() &&
		len(named.FindAllString(text, maxPlaceholders+1)) > maxPlaceholders:
		return fmt.Errorf("%s has more than %d placeholders", what, maxPlaceholders)
	}
	return nil
}
