package terminal

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// Colors of text.
const (
	plain  = "\x1b[0m"
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

// Colors reports whether what a command writes to a stream has colors: it is a terminal, and NO_COLOR is empty.
func Colors(stream any) bool {
	return config.IsTerminal(stream) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Colored is Out with colors, if Out may have some. Lines have theirs by what they begin with. What others wrote in
// them is printable before, so nobody else colors anything.
func (t *Terminal) Colored() io.Writer {
	if !Colors(t.Raw.Out) {
		return t.Out
	}
	return config.Printable(&painter{w: t.Raw.Out})
}

// painter colors whole lines.
type painter struct {
	w    io.Writer
	mu   sync.Mutex
	rest []byte // of the last line
}

// Write implements io.Writer.
func (p *painter) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, text...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	if end == 0 {
		return len(text), nil
	}
	var b strings.Builder
	for line := range strings.Lines(string(p.rest[:end])) {
		b.WriteString(Paint(strings.TrimSuffix(line, "\n")) + "\n")
	}
	p.rest = append([]byte(nil), p.rest[end:]...)
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

var (
	// timed is a line that begins with a time and a word: of an event, or of a log.
	timed = regexp.MustCompile(`^(\d\d:\d\d:\d\d\.\d{3}\S*) (error|warn |info |debug|log  |event|batch|tick ) (.*)$`)
	// ended is how an event ended, in its line.
	ended = regexp.MustCompile(`  (✗ \S+|✓( \d+)?|asks to run again|[1-5]\d\d( [a-z]+)?|(?:ok|failed|broken|retry|interrupted)\b)(  |[ :,]|$)`)
	// said is a word with which a line begins.
	said = regexp.MustCompile(`^(ok|warn|bad)( +)(\S.*)$`)
	// noted is a line that ends with a warning or a note.
	noted = regexp.MustCompile(`^(\S+: )?(warning:|note:)`)
)

// words are the colors of words with which a line begins.
var words = map[string]string{
	"error": red, "warn": yellow, "info": cyan, "debug": dim, "log": dim, "event": cyan, "batch": cyan, "tick": cyan,
	"ok": green, "bad": red,
}

// Paint colors a printable line by what it begins with.
func Paint(line string) string {
	if m := timed.FindStringSubmatch(line); m != nil {
		return dim + m[1] + plain + " " + words[strings.TrimSpace(m[2])] + m[2] + plain + " " + paintEnd(m[2], m[3])
	}
	if m := said.FindStringSubmatch(line); m != nil {
		return words[m[1]] + m[1] + plain + m[2] + m[3]
	}
	if m := noted.FindStringSubmatchIndex(line); m != nil {
		return line[:m[4]] + yellow + line[m[4]:m[5]] + plain + line[m[5]:]
	}
	trimmed := strings.TrimLeft(line, " ")
	switch {
	case strings.HasPrefix(line, "✓"):
		return green + line + plain
	case strings.HasPrefix(line, "✗"):
		return red + line + plain
	case strings.HasPrefix(line, "– "), strings.HasPrefix(trimmed, "at ") && trimmed != line:
		return dim + line + plain
	case strings.HasPrefix(trimmed, "→ "):
		return cyan + line + plain
	case strings.HasPrefix(line, "ending:"):
		return yellow + line + plain
	}
	return line
}

// paintEnd colors how an event ended.
func paintEnd(word, text string) string {
	m := ended.FindStringSubmatchIndex(text)
	if m == nil || word != "event" && word != "batch" {
		return text
	}
	color, how := green, text[m[2]:m[3]]
	switch {
	case strings.HasPrefix(how, "✗"), strings.HasPrefix(how, "5"), strings.Contains(how, "failed"),
		strings.Contains(how, "broken"):
		color = red
	case strings.HasPrefix(how, "4"), strings.Contains(how, "again"), strings.Contains(how, "retry"),
		strings.Contains(how, "interrupted"):
		color = yellow
	}
	return text[:m[2]] + color + how + plain + text[m[3]:]
}

// headLine is the head of a table: words without lower case.
var headLine = regexp.MustCompile(`^[A-Z][A-Z0-9/ ]{6,}$`)

// alarming is what a line of a table ends with when someone should look at it.
var alarming = regexp.MustCompile(`(does not answer|draining|parks|offline|do not answer: \S.*)$`)

// paintTables colors a text of tables, as a Screen shows it: its first line, heads, and what is wrong.
func paintTables(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case i == 0:
			lines[i] = bold + line + plain
		case headLine.MatchString(line):
			lines[i] = dim + line + plain
		default:
			lines[i] = alarming.ReplaceAllString(line, yellow+"$1"+plain)
		}
	}
	return strings.Join(lines, "\n")
}
