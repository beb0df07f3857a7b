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

// Colored is Out for lines that people read: with colors, if Out may have some, and on a terminal with long lines
// broken between words. Lines have their colors by what they begin with. What others wrote in them is printable
// before, so nobody else colors anything.
func (t *Terminal) Colored() io.Writer {
	if t.Columns() == 0 && !Colors(t.Raw.Out) {
		return t.Out
	}
	return config.Printable(&painter{w: t.Raw.Out, colors: Colors(t.Raw.Out), columns: t.Columns})
}

// painter colors and breaks whole lines.
type painter struct {
	w       io.Writer
	colors  bool
	columns func() int // of the terminal, which may change; 0 = none

	mu     sync.Mutex
	rest   []byte // of the last line
	within bool   // the line before was of an event or a log
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
	columns := p.columns()
	for line := range strings.Lines(string(p.rest[:end])) {
		b.WriteString(p.line(strings.TrimSuffix(line, "\n"), columns) + "\n")
	}
	p.rest = append([]byte(nil), p.rest[end:]...)
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// hanging is how much further the rest of a broken line begins.
const hanging = 4

// line is a line as it is shown. Only text is broken: a command or a line of code is to be copied as it is.
func (p *painter) line(line string, columns int) string {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	p.within = timed.MatchString(line) || p.within && indent >= hanging
	text := p.within || placed.MatchString(line)
	if p.colors {
		line = Paint(line)
	}
	if !text {
		return line
	}
	return Wrapped(line, columns, indent+hanging)
}

var (
	// timed is a line that begins with a time and a word: of an event, or of a log.
	timed = regexp.MustCompile(`^(\d\d:\d\d:\d\d\.\d{3}\S*) (error|warn |info |debug|log  |event|batch|tick ) (.*)$`)
	// placed is a line about a place in a source, a warning or a note.
	placed = regexp.MustCompile(`^ *(\S+:\d+:\d+: |(warning|note): )`)
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
