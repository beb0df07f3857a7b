package workers

import (
	"strings"
	"unicode/utf8"
)

// Path is the path of a request in its canonical form. NewPath makes it where a request enters, once. Routes, bases,
// public paths, paths of workerFirst, redirects and files are all decided by it, so two ways to write one path never
// have two meanings. The zero Path has no segment, and nothing matches it.
//
// Segments . and .. are resolved, as the URL parser of the handler resolves them. No browser sends them, so such a path
// is taken for an attempt to get around something: no file is at it, and it is not public. Two paths are the same if
// their segments have the same bytes, escaped or not. Upper and lower case differ, and so do empty segments.
type Path struct {
	url   string // as the handler sees it
	key   string // each segment in the one way to escape it; segments as in url
	plain bool
}

// NewPath reads a path as a request has it, escaped. Bytes that a URL cannot have are escaped.
func NewPath(escaped string) Path {
	url := escape(escaped)
	if !strings.HasPrefix(url, "/") {
		url = "/" + url
	}
	dotted := DotSegment(url)
	if dotted {
		url = resolveDots(url)
	}
	if !strings.Contains(url, "%") {
		return Path{url: url, key: escapeKey(url), plain: !dotted}
	}
	p := Path{url: url, key: keyOf(url)}
	text, ok := unescape(url)
	p.plain = ok && !dotted && utf8.ValidString(text) && !strings.ContainsAny(text, "\\\x00") &&
		strings.Count(text, "/") == strings.Count(url, "/")
	return p
}

// PathOfFile is the path at which a file is, which is not escaped.
func PathOfFile(text string) Path { return NewPath(strings.ReplaceAll(text, "%", "%25")) }

// URL is the path as the handler sees it: escaped as it came, with . and .. resolved.
func (p Path) URL() string { return p.url }

// Canonical is the path with each segment escaped in one way. Equal paths have equal texts.
func (p Path) Canonical() string { return p.key }

// File is the path without escapes. ok is false if no file can be at it: a segment has an escaped slash, backslash or
// NUL, or is . or .., or the path is not UTF-8. Such a path is never public either.
func (p Path) File() (text string, ok bool) {
	if !p.plain {
		return "", false
	}
	return unescape(p.key)
}

// First is the first segment, escaped in one way.
func (p Path) First() string {
	segment, _, _ := cutSegment(p.key)
	return segment
}

// Below is the path below base, which is escaped, and begins with / and does not end with it. ok is false if the path
// is not base, and not below it.
func (p Path) Below(base string) (below Path, ok bool) {
	prefix := keyOf(base)
	rest, ok := strings.CutPrefix(p.key, prefix)
	if !ok || rest != "" && rest[0] != '/' {
		return Path{}, false
	}
	if rest == "" {
		return Path{url: "/", key: "/", plain: p.plain}, true
	}
	url := p.url
	for range strings.Count(prefix, "/") {
		url = url[1+strings.IndexByte(url[1:], '/'):]
	}
	return Path{url: url, key: rest, plain: p.plain}, true
}

// matches reports whether a pattern, which validation has accepted, has the path. ":name" is any segment that is not
// empty, "*" at the end is all that follows.
func (p Path) matches(pattern string) bool {
	path := p.key
	if !p.plain {
		return false
	}
	for {
		if pattern == "/*" {
			return strings.HasPrefix(path, "/")
		}
		var want, segment string
		var more, has bool
		want, pattern, more = cutSegment(pattern)
		segment, path, has = cutSegment(path)
		switch {
		case more != has:
			return false
		case strings.HasPrefix(want, ":"):
			if segment == "" {
				return false
			}
		case keyOf(want) != segment:
			return false
		}
		if !more {
			return true
		}
	}
}

// cutSegment takes the first segment of a path that begins with /. rest begins with / if there is more.
func cutSegment(path string) (segment, rest string, more bool) {
	path = strings.TrimPrefix(path, "/")
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:], true
	}
	return path, "", false
}

// PathKey escapes an escaped text of a path in the one way of Path.Canonical.
func PathKey(escaped string) string { return keyOf(escape(escaped)) }

const hexDigits = "0123456789ABCDEF"

// Sets of bytes that stand in a path without escape.
var (
	inURL = bytesOf("-._~!$&'()*+,;=:@/%[]")
	inKey = bytesOf("-._~!$&'()*+,;=:@/")
)

func bytesOf(others string) (set [256]bool) {
	for c := range 128 {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		set[c] = letter || c >= '0' && c <= '9' || strings.IndexByte(others, byte(c)) >= 0
	}
	return set
}

// escape escapes the bytes that the path of a URL cannot have.
func escape(text string) string { return escapeBytes(text, &inURL) }

func escapeKey(text string) string { return escapeBytes(text, &inKey) }

func escapeBytes(text string, set *[256]bool) string {
	n := 0
	for i := range len(text) {
		if !set[text[i]] {
			n++
		}
	}
	if n == 0 {
		return text
	}
	b := make([]byte, 0, len(text)+2*n)
	for i := range len(text) {
		b = appendByte(b, text[i], set)
	}
	return string(b)
}

func appendByte(b []byte, c byte, set *[256]bool) []byte {
	if set[c] {
		return append(b, c)
	}
	return append(b, '%', hexDigits[c>>4], hexDigits[c&15])
}

// keyOf escapes what stands in an escaped path in one way. A slash that is escaped stays so.
func keyOf(escaped string) string {
	if !strings.Contains(escaped, "%") {
		return escapeKey(escaped)
	}
	b := make([]byte, 0, len(escaped)+8)
	for i := 0; i < len(escaped); i++ {
		c, ok := byteAt(escaped, i)
		switch {
		case !ok:
			b = appendByte(b, escaped[i], &inKey)
			continue
		case c == '/':
			b = append(b, "%2F"...)
		default:
			b = appendByte(b, c, &inKey)
		}
		i += 2
	}
	return string(b)
}

// unescape replaces the escapes. ok is false if a % escapes nothing.
func unescape(escaped string) (text string, ok bool) {
	if !strings.Contains(escaped, "%") {
		return escaped, true
	}
	b := make([]byte, 0, len(escaped))
	for i := 0; i < len(escaped); i++ {
		c, is := byteAt(escaped, i)
		switch {
		case is:
			i += 2
		case escaped[i] == '%':
			return "", false
		default:
			c = escaped[i]
		}
		b = append(b, c)
	}
	return string(b), true
}

// byteAt is the byte that is escaped at i. ok is false if none is.
func byteAt(text string, i int) (c byte, ok bool) {
	if text[i] != '%' || i+2 >= len(text) {
		return 0, false
	}
	high, low := nibble(text[i+1]), nibble(text[i+2])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

func nibble(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// dots says what a URL parser takes a segment for: 1 is ".", 2 is "..", 0 is another one.
func dots(segment string) int {
	n := 0
	for segment != "" {
		rest, ok := strings.CutPrefix(segment, ".")
		if !ok && len(segment) >= 3 && strings.EqualFold(segment[:3], "%2e") {
			rest, ok = segment[3:], true
		}
		if n++; !ok || n > 2 {
			return 0
		}
		segment = rest
	}
	return n
}

// resolveDots resolves segments . and .. as the URL standard does.
func resolveDots(path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	out := make([]string, 0, len(segments))
	for i, s := range segments {
		last := i == len(segments)-1
		n := dots(s)
		switch {
		case n == 0:
			out = append(out, s)
			continue
		case n == 2 && len(out) > 0:
			out = out[:len(out)-1]
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}

// DotSegment reports whether a URL parser takes a segment of the path for . or ..; the path has another meaning then.
func DotSegment(path string) bool {
	if !strings.Contains(path, ".") && !strings.Contains(path, "%") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if dots(segment) > 0 {
			return true
		}
	}
	return false
}
