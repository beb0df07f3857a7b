package assets

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Bounds of _headers and _redirects, as Cloudflare has them.
const (
	maxRulesText = 1 << 20
	maxRedirects = 2000 // without * and :name
	maxDynamic   = 100  // with them
	maxHeaders   = 100  // paths in _headers, and lines below each
	maxRuleLine  = 2000 // bytes
)

// Redirect is a line of _redirects. Status 200 answers with another file, and changes no address.
type Redirect struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Status int    `json:"status"`

	pattern *pattern
}

// HeaderRule is a path of _headers with its lines.
type HeaderRule struct {
	Path   string      `json:"path"`
	Set    [][2]string `json:"set,omitempty"`    // name and value
	Remove []string    `json:"remove,omitempty"` // names

	pattern *pattern
}

// check compiles and checks the rule.
func (r *Redirect) check() (err error) {
	if r.pattern, err = newPattern(r.From); err != nil {
		return err
	}
	switch r.Status {
	case http.StatusOK, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return fmt.Errorf("status %d: it is one of 200, 301, 302, 303, 307, 308", r.Status)
	}
	if err := checkFilled("the target", r.To); err != nil {
		return err
	}
	example := r.To
	if mayHavePlaceholder(example) {
		example = placeholder.ReplaceAllString(example, "x")
	}
	to, err := url.Parse(example)
	relative := strings.HasPrefix(r.To, "/") && !strings.HasPrefix(r.To, "//")
	switch {
	case err != nil || strings.ContainsFunc(r.To, unicode.IsControl) || strings.Contains(r.To, `\`):
		return fmt.Errorf("%q is no address", r.To)
	case relative:
	case r.Status == http.StatusOK:
		return fmt.Errorf("%q begins with /: status 200 answers with a file of this worker", r.To)
	case to.Scheme != "https" && to.Scheme != "http" || to.Host == "":
		return fmt.Errorf("%q is a path that begins with one /, or an address that begins with https:// or http://", r.To)
	case strings.Contains(authority(r.To), "*") || named.MatchString(authority(r.To)):
		return fmt.Errorf("%q has a placeholder in its host: a client would choose the host", r.To)
	}
	return nil
}

// authority is the host of an absolute address, with user and port. A number after : is a port.
func authority(address string) string {
	_, rest, _ := strings.Cut(address, "//")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// Location returns where a request for path is sent, or the path of the file that answers it, escaped, when the status
// is 200. query is that of the request with its ?; it is kept unless the rule has one. status is 0 if no rule has the
// path.
func (l *List) Location(path workers.Path, query string) (to string, status int) {
	r, found := l.redirect(path.Canonical())
	if r == nil {
		return "", 0
	}
	to = fill(r.To, found)
	if strings.HasPrefix(r.To, "/") { // "//host" would be another host
		to = "/" + strings.TrimLeft(to, "/")
	}
	if r.Status == http.StatusOK {
		to, _, _ = strings.Cut(to, "?")
		return to, r.Status
	}
	if base, fragment, has := strings.Cut(to, "#"); !strings.Contains(base, "?") {
		if to = base + query; has {
			to += "#" + fragment
		}
	}
	return to, r.Status
}

// redirect is the first rule that has a path; nil = none.
func (l *List) redirect(path string) (*Redirect, values) {
	if len(path) > MaxMatched {
		return nil, nil
	}
	first, ok := l.fixed[path]
	if !ok {
		first = len(l.Redirects)
	}
	for _, i := range l.dynamic {
		if i > first {
			break
		}
		if v, ok := l.Redirects[i].pattern.match(path); ok {
			return &l.Redirects[i], v
		}
	}
	if !ok {
		return nil, nil
	}
	return &l.Redirects[first], nil
}

// checkRules compiles and checks all rules.
func (l *List) checkRules() error {
	if (len(l.Redirects) > maxRedirects+maxDynamic || len(l.Headers) > maxHeaders) && !guard.FileLists.Off() {
		return fmt.Errorf("it has %d redirects and %d paths with headers: at most %d and %d are allowed",
			len(l.Redirects), len(l.Headers), maxRedirects+maxDynamic, maxHeaders)
	}
	l.fixed, l.dynamic = nil, nil
	if len(l.Redirects) > 0 {
		l.fixed = map[string]int{}
	}
	for i := range l.Redirects {
		r := &l.Redirects[i]
		if err := r.check(); err != nil {
			return err
		}
		if p := r.pattern.exact; p == "" {
			l.dynamic = append(l.dynamic, i)
		} else if _, twice := l.fixed[p]; !twice {
			l.fixed[p] = i
		}
		if err := checkNumber(i+1-len(l.dynamic), len(l.dynamic)); err != nil {
			return err
		}
	}
	for i := range l.Headers {
		if err := l.Headers[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func checkNumber(fixed, dynamic int) error {
	if (fixed > maxRedirects || dynamic > maxDynamic) && !guard.FileLists.Off() {
		return fmt.Errorf("there are more than %d rules, or more than %d with * or :name", maxRedirects, maxDynamic)
	}
	return nil
}

// parseRedirects reads _redirects: "FROM TO [STATUS]" in each line.
//
// Of two lines with one path, the first holds; notes say so. The rules have the order of the file.
func parseRedirects(text []byte) (rules []Redirect, notes []string, err error) {
	dynamic, seen := 0, map[string]bool{}
	err = lines(redirectsFile, text, func(line string) error {
		fields := strings.Fields(comment.ReplaceAllString(line, ""))
		if len(fields) < 2 || len(fields) > 3 {
			return fmt.Errorf("a line is FROM TO, or FROM TO STATUS")
		}
		r := Redirect{From: fields[0], To: fields[1], Status: http.StatusFound}
		if len(fields) == 3 {
			var err error
			if r.Status, err = strconv.Atoi(fields[2]); err != nil {
				return fmt.Errorf("status %q: it is one of 200, 301, 302, 303, 307, 308", fields[2])
			}
		}
		if err := r.check(); err != nil {
			return err
		}
		if seen[r.From] {
			notes = append(notes, fmt.Sprintf("%s: %s stands twice, and the first line holds", redirectsFile, r.From))
			return nil
		}
		seen[r.From] = true
		if r.pattern.exact == "" {
			dynamic++
		}
		rules = append(rules, r)
		return checkNumber(len(rules)-dynamic, dynamic)
	})
	return rules, notes, err
}

// comment is what follows # behind a rule.
var comment = regexp.MustCompile(`\s#.*$`)

// lines calls each with the lines that say something. An error becomes an *Error with the line.
func lines(file string, text []byte, each func(line string) error) error {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		var err error
		switch {
		case len(line) > maxRuleLine:
			err = fmt.Errorf("the line has %d bytes: at most %d are allowed", len(line), maxRuleLine)
		case !utf8.ValidString(line):
			err = errors.New("the line is not UTF-8")
		default:
			err = each(line)
		}
		if err != nil {
			return &Error{File: file, Line: n, Column: 1 + len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace)),
				Text: err.Error()}
		}
	}
	return nil
}

// fixedHeaders are set by the gateway, or belong to the connection.
var fixedHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Range", "Date", "Event-Id", "Keep-Alive",
	"Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func (r *HeaderRule) check() (err error) {
	if r.pattern, err = newPattern(r.Path); err != nil {
		return err
	}
	if len(r.Set)+len(r.Remove) > maxHeaders {
		return fmt.Errorf("%s has more than %d headers", r.Path, maxHeaders)
	}
	for _, h := range r.Set {
		if err := checkHeader(h[0]); err != nil {
			return err
		}
		if err := checkFilled("the value of "+h[0], h[1]); err != nil {
			return err
		}
		if !httpguts.ValidHeaderFieldValue(h[1]) {
			return fmt.Errorf("the value of %s has characters that a header cannot have", h[0])
		}
	}
	for _, name := range r.Remove {
		if err := checkHeader(name); err != nil {
			return err
		}
	}
	return nil
}

func checkHeader(name string) error {
	switch {
	case len(name) > maxRuleLine || !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("%.100q is no name of a header", name)
	case slices.Contains(fixedHeaders, textproto.CanonicalMIMEHeaderKey(name)):
		return fmt.Errorf("%s cannot be set: it is made for each response", name)
	}
	return nil
}

// parseHeaders reads _headers: a path in a line, and below it lines that begin with a space, "NAME: VALUE" or "! NAME".
func parseHeaders(text []byte) ([]HeaderRule, error) {
	var rules []HeaderRule
	err := lines(headersFile, text, func(line string) error {
		if !unicode.IsSpace(rune(line[0])) {
			if rules = append(rules, HeaderRule{Path: line}); len(rules) > maxHeaders {
				return fmt.Errorf("there are more than %d paths", maxHeaders)
			}
			return rules[len(rules)-1].check()
		}
		if len(rules) == 0 {
			return fmt.Errorf("a path comes first, at the beginning of a line")
		}
		r := &rules[len(rules)-1]
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "!"); ok {
			r.Remove = append(r.Remove, strings.TrimSpace(name))
			return r.check()
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("a line below a path is NAME: VALUE, or ! NAME")
		}
		r.Set = append(r.Set, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
		return r.check()
	})
	return rules, err
}

// maxMarked is how many bytes of headers Mark sets in one response. Rules beyond add nothing.
const maxMarked = 64 << 10

// Mark sets and removes the headers of a file's response as _headers says. path is that of the request. Rules come in
// their order; headers of the same name in several rules are joined.
func (l *List) Mark(path workers.Path, h http.Header) {
	key := path.Canonical()
	if len(key) > MaxMatched {
		return
	}
	set, left := map[string][]string{}, maxMarked
	if guard.FileRules.Off() {
		left = math.MaxInt
	}
	for i := range l.Headers {
		r := &l.Headers[i]
		found, ok := r.pattern.match(key)
		if !ok {
			continue
		}
		for _, name := range r.Remove {
			name = textproto.CanonicalMIMEHeaderKey(name)
			delete(h, name)
			delete(set, name)
		}
		for _, header := range r.Set {
			name := textproto.CanonicalMIMEHeaderKey(header[0])
			if left -= len(name) + len(header[1]); left < 0 {
				break
			}
			value := fill(header[1], found)
			if left -= max(0, len(value)-len(header[1])); left >= 0 {
				set[name] = append(set[name], value)
			}
		}
	}
	for name, list := range set {
		if name != "Set-Cookie" {
			list = []string{strings.Join(list, ", ")}
		}
		h[name] = list
	}
}
