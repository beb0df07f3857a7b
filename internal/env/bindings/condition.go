package bindings

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// conditionTexts is how many texts a condition has: etags that must match, and that must not; times that the object
// must be older than, and younger than; and "1" if seconds are the unit of those.
//
// Etags are "" (no condition), "*" (any), "=" with one etag, or "h" with the value of an HTTP header. Times are "",
// milliseconds since 1970, or "h" with the value of an HTTP header.
const conditionTexts = 5

// condition is R2's onlyIf. The rules are those of HTTP's conditional requests.
type condition struct {
	match, noMatch *etags // nil = none
	before, after  *time.Time
	seconds        bool
}

// etags are a set of etags.
type etags struct {
	any          bool
	strong, weak []string
}

func (e *etags) has(etag string, weakly bool) bool {
	if e.any {
		return true
	}
	for _, s := range e.strong {
		if s == etag {
			return true
		}
	}
	if weakly {
		for _, s := range e.weak {
			if s == etag {
				return true
			}
		}
	}
	return false
}

func readCondition(texts []string) (c condition, err error) {
	if c.match, err = readEtags(texts[0]); err != nil {
		return c, err
	}
	if c.noMatch, err = readEtags(texts[1]); err != nil {
		return c, err
	}
	if c.before, err = readTime(texts[2]); err != nil {
		return c, err
	}
	c.after, err = readTime(texts[3])
	c.seconds = texts[4] == "1"
	return c, err
}

// readEtags parses etags. Those of a header have quotes.
func readEtags(text string) (*etags, error) {
	switch {
	case text == "":
		return nil, nil
	case text == "*":
		return &etags{any: true}, nil
	case text[0] == '=':
		return &etags{strong: []string{text[1:]}}, nil
	}
	list := text[1:]
	e := &etags{}
	for {
		list = strings.TrimLeft(list, " \t,")
		if list == "" {
			return e, nil
		}
		if rest, ok := strings.CutPrefix(list, "*"); ok {
			e.any, list = true, rest
			continue
		}
		rest, weak := strings.CutPrefix(list, "W/")
		value, ok := strings.CutPrefix(rest, `"`)
		if value, list, _ = strings.Cut(value, `"`); !ok || len(rest) == len(value)+1 {
			return nil, errors.New("a header of the condition has an etag without quotes")
		}
		if weak {
			e.weak = append(e.weak, value)
		} else {
			e.strong = append(e.strong, value)
		}
	}
}

// readTime parses a time. One of a header that is no time is no condition, as in HTTP.
func readTime(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if header, ok := strings.CutPrefix(text, "h"); ok {
		t, err := http.ParseTime(header)
		if err != nil {
			return nil, nil //nolint:nilerr // no condition
		}
		return &t, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the time %q is no number", text)
	}
	t := time.UnixMilli(ms)
	return &t, nil
}

// met reports whether an object meets the condition; nil is an object that is not there.
func (c *condition) met(v *version) bool {
	if v == nil {
		return c.match == nil && c.after == nil
	}
	match := c.match == nil || c.match.has(v.etag(), false)
	noMatch := c.noMatch == nil || !c.noMatch.has(v.etag(), true)
	uploaded := c.unit(v.uploaded)
	after := c.after == nil || c.unit(*c.after).Before(uploaded) || c.noMatch != nil && noMatch
	before := c.before == nil || uploaded.Before(c.unit(*c.before)) || c.match != nil && match
	return match && noMatch && after && before
}

func (c *condition) unit(t time.Time) time.Time {
	if c.seconds {
		return t.Truncate(time.Second)
	}
	return t
}

var errRange = errors.New("The requested range is not satisfiable (10039)") //nolint:staticcheck // Cloudflare's words

// readRange parses a range of an object: "" (all), "OFFSET,LENGTH" (each may be ""), "-SUFFIX", or "h" with the value
// of a Range header. A header that is not understood, or beyond the object, selects all of it.
func readRange(text string, size uint64) (span, error) {
	whole := span{0, size}
	if text == "" || text == "," {
		return whole, nil
	}
	if header, ok := strings.CutPrefix(text, "h"); ok {
		part, err := readRange(ofHeader(header), size)
		if err != nil {
			return whole, nil //nolint:nilerr // HTTP's 416 is for those who answer requests
		}
		return part, nil
	}
	if suffix, ok := strings.CutPrefix(text, "-"); ok {
		n, err := strconv.ParseUint(suffix, 10, 64)
		if err != nil || n == 0 || size == 0 {
			return whole, errRange
		}
		n = min(n, size)
		return span{size - n, n}, nil
	}
	from, length, _ := strings.Cut(text, ",")
	var part span
	var err error
	if from != "" {
		if part.Offset, err = strconv.ParseUint(from, 10, 64); err != nil {
			return whole, errRange
		}
	}
	part.Length = math.MaxUint64
	if length != "" {
		if part.Length, err = strconv.ParseUint(length, 10, 64); err != nil {
			return whole, errRange
		}
	}
	if part.Offset >= size || part.Length == 0 {
		return whole, errRange
	}
	part.Length = min(part.Length, size-part.Offset)
	return part, nil
}

// ofHeader returns the range of a Range header in the form of readRange, and "" if it is not one range of bytes.
func ofHeader(header string) string {
	text, ok := strings.CutPrefix(strings.TrimSpace(header), "bytes=")
	from, to, both := strings.Cut(text, "-")
	if !ok || !both || strings.Contains(text, ",") {
		return ""
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	if from == "" {
		return "-" + to
	}
	first, err := strconv.ParseUint(from, 10, 63)
	if err != nil {
		return ""
	}
	if to == "" {
		return from + ","
	}
	last, err := strconv.ParseUint(to, 10, 63)
	if err != nil || last < first {
		return ""
	}
	return fmt.Sprintf("%d,%d", first, last-first+1)
}
