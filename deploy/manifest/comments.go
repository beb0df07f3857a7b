package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Comments is what the line comments before the first line of code say of a worker. The zero Comments say nothing.
type Comments struct {
	Spec     workers.Spec
	Warnings []Diagnostic // words with an @ that mean nothing here
	Hoody    bool         // the mode has Hoody's name

	sockets error            // the fault of @websocket in another mode than persistent; nil = it does not stand there
	said    map[string]int64 // offset of each word's value
	path    string           // of the file
	source  []byte
}

// word is one that means something in a magic comment.
type word struct {
	name string
	set  func(s *workers.Spec, value string) error // the error says what is allowed
}

// words are those of Hoody, where Pinwheel has the same.
var words = []word{
	{wordMode, func(s *workers.Spec, value string) error {
		s.Mode = cmp.Or(modeAliases[value], workers.Mode(value))
		return s.Mode.Validate()
	}},
	{"concurrent", func(s *workers.Spec, value string) error {
		n, ok := readConcurrent(value)
		if s.Concurrency = n; !ok {
			return fmt.Errorf("@concurrent is %q: it is true, false (one at a time) or a number from 1 to %d", value, workers.MaxConcurrency)
		}
		return nil
	}},
	{"timeout", func(s *workers.Spec, value string) error {
		wall, ok := Duration(value)
		most := workers.MaxLimits.Wall
		if ok && wall == 0 { // Hoody: as long as it takes
			wall = most
		}
		if s.Limits.Wall = wall; !ok || wall < workers.Millis(time.Millisecond) || wall > most {
			return fmt.Errorf("@timeout is %q: it is a number of milliseconds from 1 to %d, a duration like 30s, or 0 for the longest; every run has a limit", value, time.Duration(most).Milliseconds())
		}
		return nil
	}},
	{"cors", func(s *workers.Spec, value string) error {
		corsOf(s).Origins = strings.Split(value, ",")
		return nil
	}},
	{"cors-credentials", func(s *workers.Spec, value string) (err error) {
		corsOf(s).Credentials, err = readBool("cors-credentials", value)
		return err
	}},
	{"cors-methods", func(s *workers.Spec, value string) error {
		corsOf(s).Methods = strings.Split(value, ",")
		return nil
	}},
	{"token", func(s *workers.Spec, value string) error {
		if err := events.CheckEnvName(value); err != nil {
			return fmt.Errorf("@token is the name of a secret, which is stored with pinwheel secrets set: %w", err)
		}
		httpOf(s).Auth, s.Secrets = value, []string{value}
		return nil
	}},
	{WordEnabled, func(s *workers.Spec, value string) error {
		enabled, err := readBool(WordEnabled, value)
		httpOf(s).Enabled = &enabled
		return err
	}},
	{"log-level", func(s *workers.Spec, value string) error {
		if logOf(s).Level = workers.RequestLevel(value); !slices.Contains(workers.RequestLevels[:], logOf(s).Level) {
			return fmt.Errorf("@log-level is %q: it is none, minimal, standard or full", value)
		}
		return nil
	}},
	{"log-request-body", func(s *workers.Spec, value string) (err error) {
		logOf(s).RequestBody, err = readBool("log-request-body", value)
		return err
	}},
	{"log-response-body", func(s *workers.Spec, value string) (err error) {
		logOf(s).ResponseBody, err = readBool("log-response-body", value)
		return err
	}},
	{wordWebSocket, func(*workers.Spec, string) error { return nil }}, // see ParseComments
}

// WordEnabled says whether HTTP requests are answered.
const WordEnabled = "enabled"

// wordMode says in which mode the worker runs.
const wordMode = "mode"

// wordWebSocket says that the worker accepts WebSockets. It needs no value.
const wordWebSocket = "websocket"

func readBool(word, value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, fmt.Errorf("@%s is %q: it is true or false", word, value)
	}
	return value == "true", nil
}

// modeAliases are the names of Hoody's modes.
var modeAliases = map[string]workers.Mode{"worker": workers.Persistent, "serverless": workers.Oneshot}

func httpOf(s *workers.Spec) *workers.HTTP {
	if s.HTTP == nil {
		s.HTTP = &workers.HTTP{}
	}
	return s.HTTP
}

func logOf(s *workers.Spec) *workers.RequestLog {
	h := httpOf(s)
	if h.Log == nil {
		h.Log = &workers.RequestLog{}
	}
	return h.Log
}

func corsOf(s *workers.Spec) *workers.CORS {
	h := httpOf(s)
	if h.CORS == nil {
		h.CORS = &workers.CORS{}
	}
	return h.CORS
}

// Most words to warn of: the comments of a file may be as long as the file.
const maxUnknownWords = 10

// commentWord is "// @word", with what follows. A word of a path, like a package's, is none.
var commentWord = regexp.MustCompile(`^\s*//\s*@([A-Za-z][A-Za-z0-9_-]*)(?:[ \t]+(\S+))?(?:[ \t]|\r?\n?$)`)

// otherTools are words, or beginnings of words that end in -, of other tools.
var otherTools = []string{
	"ts-", "jsx", "jsxRuntime", "jsxImportSource", "jsxFrag", "license", "licence", "preserve", "cc_on", "author",
	"copyright", "file", "fileoverview",
	"overview", "module", "packageDocumentation", "flow", "noflow", "format", "noformat", "prettier", "generated",
	"babel-", "eslint-", "swc-", "vite-",
	"vitest-environment", "jest-environment", "jest-", "vitest-", "deno-", "bun-", "biome-", "cspell", "refresh",
	"sourceMappingURL", "sourceURL",
	"see", "todo", "deprecated", "internal", "public", "private", "since", "version", "description", "example", "param",
	"returns", "type", "typedef",
}

// readConcurrent reads how many events may run at once. false means one, as in Hoody.
func readConcurrent(value string) (n int, ok bool) {
	switch value {
	case "true":
		return 0, true
	case "false":
		return 1, true
	}
	n, err := strconv.Atoi(value)
	return n, err == nil && n >= 1 && n <= workers.MaxConcurrency
}

func ofOtherTool(word string) bool {
	return slices.ContainsFunc(otherTools, func(known string) bool {
		return word == known || strings.HasSuffix(known, "-") && strings.HasPrefix(word, known)
	})
}

// ParseComments reads "// @WORD VALUE" for each of words, and finds unknown words in its place. Words in a block
// comment are of JSDoc. The error is a *SourceError at the value that is wrong.
func ParseComments(path string, source []byte) (Comments, error) {
	c := Comments{said: map[string]int64{}, path: path, source: source}
	offset, inBlock := int64(0), false
	for line := range strings.SplitAfterSeq(string(source), "\n") {
		text := strings.TrimSpace(line)
		if at := commentWord.FindStringSubmatchIndex(line); at != nil && !inBlock {
			value, from := "", int64(at[3])
			if at[4] >= 0 {
				value, from = line[at[4]:at[5]], int64(at[4])
			}
			name := line[at[2]:at[3]]
			if name == wordWebSocket && value != "false" {
				value = "true" // what follows is a remark
				c.sockets = Fault(path, source, offset+int64(at[2])-1, "@%s is for a worker whose context stays: // @mode %s", name,
					workers.Persistent)
			}
			if err := c.read(name, value, offset+from); err != nil {
				return Comments{}, Fault(path, source, offset+from, "%v", err)
			}
			if !isWord(name) && !ofOtherTool(name) && len(c.Warnings) < maxUnknownWords {
				unknown := Fault(path, source, offset+int64(at[2])-1, "@%s means nothing here: the words are %s", name, wordList())
				c.Warnings = append(c.Warnings, unknown.Diagnostics...)
			}
		}
		if strings.HasPrefix(text, "/*") {
			inBlock = true
		}
		if !inBlock && text != "" && !strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "#!") {
			break
		}
		if strings.Contains(text, "*/") {
			inBlock = false
		}
		offset += int64(len(line))
	}
	if err := Validate(c.Spec); err != nil { // one word may need another one
		return Comments{}, Fault(path, source, c.first(), "%v", err)
	}
	return c, nil
}

// read takes a word with its value. A word without a value, and one that is not known, say nothing.
func (c *Comments) read(name, value string, offset int64) error {
	i := slices.IndexFunc(words, func(w word) bool { return w.name == name })
	if i < 0 || value == "" {
		return nil
	}
	if _, twice := c.said[name]; twice {
		return fmt.Errorf("@%s stands twice: say it once", name)
	}
	c.said[name] = offset
	c.Hoody = c.Hoody || name == wordMode && modeAliases[value] != ""
	return words[i].set(&c.Spec, value)
}

// Check returns the fault of a word that does not fit the whole specification.
func (c *Comments) Check(spec workers.Spec) error {
	if spec.Mode == workers.Persistent {
		return nil
	}
	return c.sockets
}

// Fault is a fault of the value of a word, which must say something.
func (c *Comments) Fault(word, format string, args ...any) *SourceError {
	return Fault(c.path, c.source, c.said[word], format, args...)
}

// File is the name of the file.
func (c *Comments) File() string { return c.path }

// Words are the words that say something, in order of the alphabet.
func (c *Comments) Words() []string { return slices.Sorted(maps.Keys(c.said)) }

// first is the offset of the first word about HTTP: whether those fit is known when all are read.
func (c *Comments) first() int64 {
	first := int64(-1)
	for name, offset := range c.said {
		if about := strings.HasPrefix(name, "cors") || name == "token"; about && (first < 0 || offset < first) {
			first = offset
		}
	}
	return first
}

func isWord(name string) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.name == name })
}

// wordList is "@mode, @concurrent and @token".
func wordList() string {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = "@" + w.name
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// With returns the specification of a manifest with what the comments say. With an error, key is the manifest's key
// that says something else.
func (c *Comments) With(spec workers.Spec) (_ workers.Spec, key string, err error) {
	said := c.Spec
	switch {
	case said.Mode != "" && spec.Mode != "" && said.Mode != spec.Mode:
		return spec, "mode", fmt.Errorf("mode is %q here and %q", spec.Mode, said.Mode)
	case said.Concurrency != 0 && spec.Concurrency != 0 && said.Concurrency != spec.Concurrency:
		return spec, "concurrency", fmt.Errorf("concurrency is %d here and %d", spec.Concurrency, said.Concurrency)
	case said.Limits.Wall != 0 && spec.Limits.Wall != 0 && said.Limits.Wall != spec.Limits.Wall:
		return spec, "limits.wallMs", fmt.Errorf("limits.wallMs is %v here and %v", time.Duration(spec.Limits.Wall),
			time.Duration(said.Limits.Wall))
	}
	spec.Mode, spec.Concurrency = cmp.Or(spec.Mode, said.Mode), cmp.Or(spec.Concurrency, said.Concurrency)
	spec.Limits.Wall = cmp.Or(spec.Limits.Wall, said.Limits.Wall)
	if said.HTTP == nil {
		return spec, "", nil
	}
	h := workers.HTTP{}
	if spec.HTTP != nil {
		h = *spec.HTTP
	}
	switch {
	case said.HTTP.CORS != nil && h.CORS != nil:
		return spec, "http.cors", errors.New("http.cors is here, and @cors")
	case said.HTTP.Auth != "" && h.Auth != "" && said.HTTP.Auth != h.Auth:
		return spec, "http.auth", fmt.Errorf("http.auth is %q here and %q", h.Auth, said.HTTP.Auth)
	case said.HTTP.Log != nil && h.Log != nil:
		return spec, "http.log", errors.New("http.log is here, and @log-…")
	case said.HTTP.Enabled != nil && h.Enabled != nil && *said.HTTP.Enabled != *h.Enabled:
		return spec, "http.enabled", fmt.Errorf("http.enabled is %v here and %v", *h.Enabled, *said.HTTP.Enabled)
	}
	h.CORS, h.Auth = cmp.Or(h.CORS, said.HTTP.CORS), cmp.Or(h.Auth, said.HTTP.Auth)
	h.Log, h.Enabled = cmp.Or(h.Log, said.HTTP.Log), cmp.Or(h.Enabled, said.HTTP.Enabled)
	spec.HTTP = &h
	for _, name := range said.Secrets {
		if !slices.Contains(spec.Secrets, name) {
			spec.Secrets = append(slices.Clip(spec.Secrets), name)
		}
	}
	return spec, "", nil
}
