package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

// ShowVersion names a version, and a part of its code.
type ShowVersion struct {
	WorkerName
	Version string `json:"version"`           // whole, its number, or an alias; "" = the active one
	Code    bool   `json:"code"`              // with a part of the bundled code
	From    int    `json:"from"`              // byte of the code where the part begins
	Compare string `json:"compare,omitempty"` // another version: the answer names variables with other values
}

// ShownVersion is a version, with as much of its code as a message takes.
type ShownVersion struct {
	Version Worker `json:"version"` // without its deployment
	Size    int    `json:"size"`    // of the code, bytes
	Code    string `json:"code,omitempty"`
	Next    int    `json:"next,omitempty"` // where the next part begins; 0 at the end
	// Differs names the variables that both versions have, with different values.
	Differs []string `json:"differs,omitempty"`
}

// showVersion describes a version of a worker.
func (s *Server) showVersion(ctx context.Context, r ShowVersion) (ShownVersion, error) {
	owner, name, err := r.parse()
	if err != nil {
		return ShownVersion{}, err
	}
	w, err := s.workers.Get(ctx, owner, name, r.Version)
	if err != nil {
		return ShownVersion{}, err
	}
	shown := ShownVersion{Version: DescribeWorker(w), Size: len(w.Code)}
	if r.Compare != "" {
		other, err := s.workers.Get(ctx, owner, name, r.Compare)
		if err != nil {
			return ShownVersion{}, err
		}
		shown.Differs = differing(w.AllVars(), other.AllVars())
	}
	if !r.Code {
		return shown, nil
	}
	if r.From < 0 || r.From > len(w.Code) {
		return ShownVersion{}, wrongField("from", " is %d: the code has %d bytes", r.From, len(w.Code))
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return ShownVersion{}, err
	}
	shown.Code, err = codePart(w.Code[r.From:], s.answerRoom()-len(text))
	if end := r.From + len(shown.Code); end < len(w.Code) {
		shown.Next = end
	}
	return shown, err
}

// differing returns the names that both have, with different values, sorted.
func differing(a, b map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[name]; ok && other != a[name] {
			names = append(names, name)
		}
	}
	return names
}

// codePart is the longest beginning of code that takes at most that many bytes as JSON.
func codePart(code string, room int) (string, error) {
	const worst = 6 // bytes of JSON for a byte, as in \u0000
	for n := min(len(code), room); n > 0; n = min(n-1, n/2+room/worst/2) {
		for n > 0 && n < len(code) && !utf8.RuneStart(code[n]) {
			n--
		}
		text, err := json.Marshal(code[:n])
		if err != nil {
			return "", err
		}
		if len(text) <= room {
			return code[:n], nil
		}
	}
	if code == "" {
		return "", nil
	}
	return "", fmt.Errorf("an answer has no room for code: max_payload is too small")
}

// CodeOf asks for a version with all of its code. It has only the names of its variables.
func CodeOf(ctx context.Context, c *Client, worker, version string) (*Worker, string, error) {
	r, code := ShowVersion{WorkerName: WorkerName{worker}, Version: version, Code: true}, ""
	for {
		shown, err := Ask(ctx, c, VersionsShow, r)
		if err != nil {
			return nil, "", err
		}
		code += shown.Code
		if shown.Next == 0 {
			return &shown.Version, code, nil
		}
		// An alias may be moved between two parts.
		r.Version, r.From = shown.Version.Version, shown.Next
		if shown.Next != len(code) {
			return nil, "", fmt.Errorf("version %s of %s: a process answered with another part of the code", r.Version, worker)
		}
	}
}

// ShowSource names a file of the author of a version, as stacks name it, and a line of it.
type ShowSource struct {
	WorkerName
	Version string `json:"version,omitempty"`          // whole, its number, or an alias; "" = the active one
	File    string `json:"file,omitempty" most:"1024"` // "" = the one with the handlers
	Line    int    `json:"line,omitempty"`             // that is in the middle of the part; 0 = the first
}

// Bounds of an answer with a source.
const (
	maxSourceLines = 2000
	maxSourceFiles = 500
	maxSourceNames = 32 << 10 // bytes, as JSON
	maxSourceName  = 1024     // bytes of the name of a file that is chosen
)

// ShownSource is a part of a file of the author, as whole lines.
type ShownSource struct {
	Worker  string   `json:"worker"`
	Version string   `json:"version"`
	File    string   `json:"file"`
	Files   []string `json:"files"`             // with a text, sorted
	More    bool     `json:"more,omitempty"`    // there are more files than are named
	Bundled bool     `json:"bundled,omitempty"` // the version has no sources: this is what was deployed
	Lines   int      `json:"lines"`             // of the file
	From    int      `json:"from"`              // number of the first line of Text
	Text    string   `json:"text"`
	Cut     bool     `json:"cut,omitempty"` // the last line of Text has more
}

// showSource returns a part of a file of a version.
func (s *Server) showSource(ctx context.Context, r ShowSource) (ShownSource, error) {
	owner, name, err := r.parse()
	if err != nil {
		return ShownSource{}, err
	}
	w, err := s.workers.Get(ctx, owner, name, r.Version)
	if err != nil {
		return ShownSource{}, err
	}
	texts := sourcemap.Texts(w.SourceMap)
	shown := ShownSource{Worker: w.Target(), Version: w.Version, File: r.File, Bundled: len(texts) == 0}
	if shown.Bundled {
		texts = map[string]string{w.File: w.Code}
	}
	shown.name(slices.Sorted(maps.Keys(texts)), w.File)
	text, ok := texts[shown.File]
	if !ok {
		return ShownSource{}, &Error{Code: http.StatusNotFound,
			Text: fmt.Sprintf("version %s of %s has no file %.200q", w.Version, w.Target(), shown.File)}
	}
	text = strings.TrimSuffix(text, "\n")
	shown.Lines = 1 + strings.Count(text, "\n")
	if r.Line < 0 || r.Line > shown.Lines {
		return ShownSource{}, wrongField("line", " is %d: the file has %d lines", r.Line, shown.Lines)
	}
	return shown, shown.part(text, max(1, r.Line), s.answerRoom()-2*maxSourceNames-8192)
}

// name names files, and chooses one if none is asked for: the one of the name of the bundle, or the first that is not
// of a package.
func (s *ShownSource) name(files []string, bundle string) {
	size := 0
	for _, f := range files {
		name, _ := json.Marshal(f) // a string: there is no error
		if size += len(name) + 1; len(s.Files) == maxSourceFiles || size > maxSourceNames {
			s.More = true
			break
		}
		s.Files = append(s.Files, f)
	}
	if s.File != "" {
		return
	}
	stem := func(f string) string { return strings.TrimSuffix(f, path.Ext(f)) }
	own := func(f string) bool { return stem(f) == stem(bundle) }
	files = slices.DeleteFunc(files, func(f string) bool { return len(f) > maxSourceName })
	for _, choose := range []func(string) bool{own, func(f string) bool { return !strings.Contains(f, "node_modules/") },
		func(string) bool { return true }} {
		if i := slices.IndexFunc(files, choose); i >= 0 {
			s.File = files[i]
			return
		}
	}
}

// part sets the lines around one, as many as take at most that many bytes as JSON.
func (s *ShownSource) part(text string, line, room int) (err error) {
	for n := maxSourceLines; n > 1; n /= 2 {
		s.From = max(1, min(line-n/2, s.Lines-n+1))
		if s.Text = linesOf(text, s.From, n); len(s.Text) > room {
			continue
		}
		data, err := encodeJSON(s.Text)
		if err != nil || len(data) <= room {
			return err
		}
	}
	one := linesOf(text, line, 1)
	s.From = line
	s.Text, err = codePart(one, room)
	s.Cut = len(s.Text) < len(one)
	return err
}

// linesOf returns n lines of a text from a line on, as far as it has them. It keeps no list of lines: a text may have
// nothing else.
func linesOf(text string, from, n int) string {
	for range from - 1 {
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	end := 0
	for range n {
		next := strings.IndexByte(text[end:], '\n')
		if next < 0 {
			return text
		}
		end += next + 1
	}
	return text[:end-1]
}

// PreviewVersion asks for a link that shows a version to who has it.
type PreviewVersion struct {
	WorkerName
	Version string `json:"version"` // whole, its number, or an alias
	For     string `json:"for"`     // how long the link is good: a duration, at most MaxPreview; "" = DefaultPreview
}

// Bounds of PreviewVersion.For.
const (
	DefaultPreview = 24 * time.Hour
	MaxPreview     = 30 * 24 * time.Hour
)

// PreviewLink shows a version.
type PreviewLink struct {
	Worker  string    `json:"worker"`
	Version string    `json:"version"`
	Host    string    `json:"host"`
	URL     string    `json:"url"` // at the address of the process that answered; behind a proxy, only the host counts
	Until   time.Time `json:"until"`
}

// recorded is all but the link, which is for who has it.
func (l PreviewLink) recorded() any {
	return struct {
		Until   time.Time `json:"until"`
		Version string    `json:"version"`
		Worker  string    `json:"worker"`
	}{l.Until, l.Version, l.Worker}
}

// previewVersion signs a link to a version.
func (s *Server) previewVersion(ctx context.Context, r PreviewVersion) (PreviewLink, error) {
	owner, name, err := r.parse()
	if err != nil {
		return PreviewLink{}, err
	}
	good := DefaultPreview
	if r.For != "" {
		good, err = time.ParseDuration(r.For)
	}
	if err != nil || good < time.Minute || good > MaxPreview {
		return PreviewLink{}, wrongField("for", " is %.40q: it is a duration like 90m, 1m to %s", r.For, MaxPreview)
	}
	w, err := s.workers.Get(ctx, owner, name, r.Version)
	if err != nil {
		return PreviewLink{}, err
	}
	in, err := s.workers.Installation(ctx, owner, name)
	if err != nil {
		return PreviewLink{}, err
	}
	until := time.Now().Add(good).Truncate(time.Minute).UTC()
	host, url, err := s.cfg.Process.Preview(w, in.Active(), until)
	if err != nil {
		return PreviewLink{}, &Error{Code: http.StatusConflict, Text: err.Error()}
	}
	return PreviewLink{Worker: w.Target(), Version: w.Version, Host: host, URL: url, Until: until}, nil
}
