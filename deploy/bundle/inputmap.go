package bundle

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// mapComment names the source map of a file. It may also be in a string.
var mapComment = regexp.MustCompile(`(?://|/\*)[#@] sourceMappingURL=(\S+)`)

// withMap keeps esbuild from reading the source map that a file names, and the sources that the map names. Instead it
// puts those of them that may be read into the file. The last comment counts, so withMap adds one at the end.
func (l *loading) withMap(path string, text []byte) []byte {
	all := mapComment.FindAllSubmatch(text, -1)
	if len(all) == 0 {
		return text
	}
	comment := "none:" // no URL that esbuild follows
	if m := l.readMap(path, strings.TrimSuffix(string(all[len(all)-1][1]), "*/")); m != nil {
		comment = "data:application/json;base64," + base64.StdEncoding.EncodeToString(m)
	}
	return append(append([]byte{}, text...), "\n//# sourceMappingURL="+comment+"\n"...)
}

// inputMap is the part of a source map that is read.
type inputMap struct {
	Version        int               `json:"version"`
	SourceRoot     string            `json:"sourceRoot,omitempty"`
	Sources        []string          `json:"sources"`
	SourcesContent []*string         `json:"sourcesContent"`
	Names          []string          `json:"names"`
	Mappings       string            `json:"mappings"`
	Sections       []json.RawMessage `json:"sections,omitempty"`
}

// readMap is the source map at the address that the file at path names, with the text of all its sources; nil = there
// is none.
func (l *loading) readMap(path, address string) []byte {
	text, from := l.mapAt(path, address)
	var m inputMap
	if text == nil || json.Unmarshal(text, &m) != nil || len(m.Sections) > 0 {
		return nil
	}
	base := &url.URL{Scheme: "file", Path: from}
	contents := make([]*string, len(m.Sources))
	copy(contents, m.SourcesContent)
	if m.SourceRoot != "" && !strings.HasSuffix(m.SourceRoot, "/") {
		m.SourceRoot += "/"
	}
	for i, source := range m.Sources {
		at, err := url.Parse(m.SourceRoot + source)
		if err != nil {
			return nil
		}
		at = base.ResolveReference(at)
		m.Sources[i] = at.String()
		if contents[i] != nil {
			continue
		}
		contents[i] = new(string) // without it, esbuild would search for the file
		if at.Scheme != "file" || at.Host != "" {
			continue
		}
		if text, err := l.read(filepath.Clean(at.Path), maxSource); err == nil {
			*contents[i] = string(text)
		}
	}
	m.SourceRoot, m.SourcesContent = "", contents
	text, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return text
}

// mapAt is the text at an address, and the file to which names in the text are relative.
func (l *loading) mapAt(path, address string) (text []byte, from string) {
	if data, ok := strings.CutPrefix(address, "data:"); ok {
		head, body, _ := strings.Cut(data, ",")
		text, err := base64.StdEncoding.DecodeString(body)
		if !strings.HasSuffix(head, ";base64") {
			body, err = url.PathUnescape(body)
			text = []byte(body)
		}
		if err != nil {
			return nil, ""
		}
		return text, path
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" && u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || virtual(path) {
		return nil, ""
	}
	u = (&url.URL{Scheme: "file", Path: path}).ResolveReference(u)
	at := filepath.Clean(u.Path)
	if text, err = l.read(at, maxSource); err != nil {
		return nil, ""
	}
	return text, at
}
