package assets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	pathpkg "path"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Bounds of the files of one version.
const (
	MaxFiles    = 20_000
	MaxFile     = 25 << 20 // bytes of one file
	MaxPath     = 1024     // bytes of the path of one file
	MaxListText = 8 << 20  // bytes of an encoded List
)

// List says which file is at which path, and the rules of _headers and _redirects. It is stored beside the files, and
// does not change.
type List struct {
	Files     map[string]File `json:"files"` // by path, which begins with / and is not escaped
	Headers   []HeaderRule    `json:"headers,omitempty"`
	Redirects []Redirect      `json:"redirects,omitempty"`

	fixed   map[string]int // by path, the redirect without * and :name
	dynamic []int          // the others, in their order
}

// File is one file. Equal files of an owner are stored once.
type File struct {
	Hash string `json:"hash"` // SHA-256, hex
	Size int64  `json:"size"` // bytes
	Type string `json:"type"` // Content-Type
	// BaseAt is, for a page without <base href>, 1 + the offset at which one goes. 0 = none goes there.
	BaseAt int64 `json:"baseAt,omitempty"`
}

// Encode returns the text of the list and its SHA-256. Equal lists have equal texts.
func (l *List) Encode() (text []byte, hash string, err error) {
	if text, err = json.Marshal(l); err != nil {
		return nil, "", fmt.Errorf("encode list of files: %w", err)
	}
	if len(text) > MaxListText {
		return nil, "", fmt.Errorf("the paths of the files have %d bytes as a list: at most %d are allowed", len(text), MaxListText)
	}
	return text, HashOf(text), nil
}

// ListError says what is wrong with the text of a list.
type ListError struct{ err error }

func (e *ListError) Error() string { return "list of files: " + e.err.Error() }

// Unwrap is what is wrong.
func (e *ListError) Unwrap() error { return e.err }

// Decode reads what Encode made. The error is a *ListError.
func Decode(text []byte) (*List, error) {
	l, err := decode(text)
	if err != nil {
		return nil, &ListError{err}
	}
	return l, nil
}

func decode(text []byte) (*List, error) {
	if err := checkShape(text); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	l := &List{}
	if err := dec.Decode(l); err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	if len(l.Files) > MaxFiles {
		return nil, fmt.Errorf("it has %d files, and at most %d are allowed", len(l.Files), MaxFiles)
	}
	for path, f := range l.Files {
		if why := wrongPath(path); why != "" {
			return nil, fmt.Errorf("path %q: %s", path, why)
		}
		if !IsHash(f.Hash) || f.Size < 0 || f.Size > MaxFile || !validType(f.Type) || f.BaseAt < 0 || f.BaseAt > f.Size+1 {
			return nil, fmt.Errorf("the file at %q is damaged", path)
		}
	}
	if err := l.checkRules(); err != nil {
		return nil, err
	}
	return l, nil
}

// Bounds of a text of JSON that can be a list: the objects, arrays and commas that it has at most.
const (
	maxObjects = 2 + MaxFiles + maxRedirects + maxDynamic + maxHeaders
	maxArrays  = 2 + maxHeaders*(2+maxHeaders)
	maxCommas  = 3 + 5*MaxFiles + 3*(maxRedirects+maxDynamic) + maxHeaders*(3+2*maxHeaders)
)

// checkShape refuses a text of which a decoder would make much more than a list can be: "{}" has two bytes, and what is
// made of it a hundred.
func checkShape(text []byte) error {
	var objects, arrays, commas int
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			objects++
		case c == '[':
			arrays++
		case c == ',':
			commas++
		}
	}
	if guard.FileLists.Off() {
		return nil
	}
	if objects > maxObjects || arrays > maxArrays || commas > maxCommas || len(text) > MaxListText {
		return fmt.Errorf("it has more than %d files, %d redirects or %d paths with headers, or more than %d bytes",
			MaxFiles, maxRedirects+maxDynamic, maxHeaders, MaxListText)
	}
	return nil
}

// validType reports whether a text can be a Content-Type.
func validType(text string) bool {
	return text != "" && len(text) <= maxType && httpguts.ValidHeaderFieldValue(text)
}

// maxType is the longest Content-Type of a file, bytes.
const maxType = 100

// HashOf is the SHA-256 of data in hex.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// IsHash reports whether s is a SHA-256 in hex.
func IsHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// wrongPath says why path cannot be that of a file; "" = it can.
func wrongPath(path string) string {
	switch {
	case !strings.HasPrefix(path, "/") || path != pathpkg.Clean(path) || path == "/":
		return "it begins with /, and has no segment that is empty, . or .."
	case len(path) > MaxPath:
		return fmt.Sprintf("it has at most %d bytes", MaxPath)
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == 0xfffd }):
		return "it has no control characters and no backslash, and it is UTF-8"
	}
	return ""
}

// types are Content-Types by extension. Those of the machine that deploys do not count: each machine has others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".json": "application/json",
	".map":         "application/json",
	".webmanifest": "application/manifest+json", ".xml": "application/xml", ".txt": "text/plain; charset=utf-8",
	".md":  "text/markdown; charset=utf-8",
	".csv": "text/csv; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg",
	".jpeg": "image/jpeg", ".gif": "image/gif",
	".webp": "image/webp", ".avif": "image/avif", ".ico": "image/vnd.microsoft.icon", ".bmp": "image/bmp",
	".woff": "font/woff", ".woff2": "font/woff2",
	".ttf": "font/ttf", ".otf": "font/otf", ".wasm": "application/wasm", ".pdf": "application/pdf",
	".zip": "application/zip", ".gz": "application/gzip",
	".mp4": "video/mp4", ".webm": "video/webm", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".wav": "audio/wav",
	".m4a": "audio/mp4",
	".ics": "text/calendar; charset=utf-8", ".yaml": "application/yaml", ".yml": "application/yaml",
	".rss": "application/rss+xml", ".atom": "application/atom+xml",
}

// typeOf is the Content-Type of a file.
func typeOf(path string) string {
	if t, ok := types[strings.ToLower(pathpkg.Ext(path))]; ok {
		return t
	}
	return "application/octet-stream"
}

// Compressible reports whether files of a type get smaller by compression. Most others are compressed already.
func Compressible(contentType string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	switch name {
	case "application/json", "application/manifest+json", "application/xml", "image/svg+xml", "application/wasm",
		"application/yaml", "application/rss+xml",
		"application/atom+xml", "image/bmp", "font/ttf", "font/otf", "image/vnd.microsoft.icon":
		return true
	}
	return strings.HasPrefix(name, "text/")
}
