package assets

import (
	"errors"
	"fmt"
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

// pattern matches paths. :name is a segment, * is any text.
type pattern struct {
	exact string // "" = it has a * or :name
	re    *regexp.Regexp
	names []string // of the groups
}

var placeholder = regexp.MustCompile(`:[A-Za-z][A-Za-z0-9_]*|\*`)

// splat is the name of what * is.
const splat = "splat"

func newPattern(text string) (*pattern, error) {
	switch {
	case !strings.HasPrefix(text, "/"):
		return nil, fmt.Errorf("%q begins with /: a rule is for every host", text)
	case len(text) > MaxPath:
		return nil, fmt.Errorf("the path has at most %d bytes", MaxPath)
	case strings.ContainsAny(text, "?#"):
		return nil, fmt.Errorf("%q has no ? and no #: only paths are compared", text)
	}
	path, err := url.PathUnescape(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no path: %%XX are two hex digits", text)
	}
	at := placeholder.FindAllStringIndex(path, -1)
	if len(at) == 0 {
		return &pattern{exact: path}, nil
	}
	p, re, end := &pattern{}, strings.Builder{}, 0
	for _, i := range at {
		name, group := path[i[0]+1:i[1]], "([^/]+)"
		if path[i[0]] == '*' {
			name, group = splat, "(.*)"
		}
		if slices.Contains(p.names, name) {
			return nil, fmt.Errorf("%q has %s twice", text, path[i[0]:i[1]])
		}
		p.names = append(p.names, name)
		re.WriteString(regexp.QuoteMeta(path[end:i[0]]) + group)
		end = i[1]
	}
	p.re, err = regexp.Compile(`^(?s:` + re.String() + regexp.QuoteMeta(path[end:]) + `)$`)
	return p, err
}

// match returns what the placeholders are, escaped for a path. ok is false if the path, which is not escaped, does not
// match.
func (p *pattern) match(path string) (values map[string]string, ok bool) {
	if p.re == nil {
		return nil, p.exact == path
	}
	m := p.re.FindStringSubmatch(path)
	if m == nil {
		return nil, false
	}
	values = map[string]string{}
	for i, name := range p.names {
		segments := strings.Split(m[i+1], "/")
		for j := range segments {
			segments[j] = url.PathEscape(segments[j])
		}
		values[name] = strings.Join(segments, "/")
	}
	return values, true
}

var named = regexp.MustCompile(`:[A-Za-z][A-Za-z0-9_]*`)

// fill replaces placeholders by values. A name that the pattern does not have stays.
func fill(text string, values map[string]string) string {
	if len(values) == 0 {
		return text
	}
	return named.ReplaceAllStringFunc(text, func(name string) string {
		if v, ok := values[name[1:]]; ok {
			return v
		}
		return name
	})
}

// check compiles and checks the rule.
func (r *Redirect) check() (err error) {
	if r.pattern, err = newPattern(r.From); err != nil {
		return err
	}
	switch r.Status {
	case http.StatusOK, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return fmt.Errorf("status %d: it is one of 200, 301, 302, 303, 307, 308", r.Status)
	}
	to, err := url.Parse(placeholder.ReplaceAllString(r.To, "x"))
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

// Location returns where a request for path is sent, or the path of the file that answers it when the status is 200.
// query is that of the request with its ?; it is kept unless the rule has one.
func (l *List) Location(path, query string) (to string, status int) {
	for i := range l.Redirects {
		r := &l.Redirects[i]
		values, ok := r.pattern.match(path)
		if !ok {
			continue
		}
		to = fill(r.To, values)
		if strings.HasPrefix(r.To, "/") { // "//host" would be another host
			to = "/" + strings.TrimLeft(to, "/")
		}
		if r.Status == http.StatusOK {
			file, _, _ := strings.Cut(to, "?")
			if file, err := url.PathUnescape(file); err == nil {
				return file, r.Status
			}
			return to, r.Status
		}
		if base, fragment, has := strings.Cut(to, "#"); !strings.Contains(base, "?") {
			if to = base + query; has {
				to += "#" + fragment
			}
		}
		return to, r.Status
	}
	return "", 0
}

// parseRedirects reads _redirects: "FROM TO [STATUS]" in each line.
func parseRedirects(text []byte) ([]Redirect, error) {
	var fixed, dynamic []Redirect
	seen := map[string]bool{}
	err := lines(redirectsFile, text, func(line string) error {
		fields := strings.Fields(line)
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
			return fmt.Errorf("%s stands twice", r.From)
		}
		seen[r.From] = true
		if r.pattern.re == nil {
			fixed = append(fixed, r)
		} else {
			dynamic = append(dynamic, r)
		}
		if len(fixed) > maxRedirects || len(dynamic) > maxDynamic {
			return fmt.Errorf("there are more than %d rules, or more than %d with * or :name", maxRedirects, maxDynamic)
		}
		return nil
	})
	return append(fixed, dynamic...), err
}

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
			return &Error{File: file, Line: n, Column: 1 + len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace)), Text: err.Error()}
		}
	}
	return nil
}

// fixedHeaders are set by the gateway, or belong to the connection.
var fixedHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Range", "Date", "Event-Id", "Keep-Alive", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
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
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("%q is no name of a header", name)
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

// Mark sets and removes the headers of a file's response as _headers says. path is that of the request, not escaped.
// Rules come in their order; headers of the same name in several rules are joined.
func (l *List) Mark(path string, h http.Header) {
	set := map[string]bool{}
	for i := range l.Headers {
		r := &l.Headers[i]
		values, ok := r.pattern.match(path)
		if !ok {
			continue
		}
		for _, name := range r.Remove {
			h.Del(name)
		}
		for _, header := range r.Set {
			name, value := textproto.CanonicalMIMEHeaderKey(header[0]), fill(header[1], values)
			switch {
			case !set[name]:
				h[name] = []string{value}
			case name == "Set-Cookie":
				h.Add(name, value)
			default:
				h.Set(name, h.Get(name)+", "+value)
			}
			set[name] = true
		}
	}
}
