package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// blockRows is the number of rows whose columns are aligned with each other. So a long list is not kept in memory, and
// its first rows appear before its end is read.
const blockRows = 200

// List prints a list: as a table, or as one JSON object a line. On a terminal the table is no wider than that.
// Elsewhere it is whole, because a script may read it.
type List struct {
	out   io.Writer
	table *tabwriter.Writer // nil: on a terminal
	json  *json.Encoder     // nil: a table
	rows  int

	// On a terminal.
	columns int // that it has
	head    []string
	block   [][]string
}

// List returns a List. head has the names of the columns.
func (t *Terminal) List(asJSON bool, head ...string) *List {
	l := &List{out: t.Out, head: head}
	if asJSON {
		l.json = json.NewEncoder(t.Out)
		l.json.SetEscapeHTML(false)
		return l
	}
	if l.columns = t.Columns(); l.columns > 0 {
		return l
	}
	l.table = t.Table()
	fmt.Fprintln(l.table, strings.Join(head, "\t"))
	return l
}

// Columns is how many characters a line of the terminal has that Out is; 0 = Out is none.
func (t *Terminal) Columns() int {
	f, ok := t.Raw.Out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Add prints one: its JSON, or its cells.
func (l *List) Add(one any, cells ...any) error {
	if l.json != nil {
		return l.json.Encode(one)
	}
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	if l.table != nil {
		fmt.Fprintln(l.table, strings.Join(row, "\t"))
	} else {
		l.block = append(l.block, row)
	}
	if l.rows++; l.rows%blockRows == 0 {
		return l.flush()
	}
	return nil
}

// End prints what is left.
func (l *List) End() error {
	if l.json != nil {
		return nil
	}
	return l.flush()
}

func (l *List) flush() error {
	if l.table != nil {
		return l.table.Flush()
	}
	rows := l.block
	if l.rows <= blockRows {
		rows = append([][]string{l.head}, rows...)
	}
	l.block = nil
	_, err := io.WriteString(l.out, fitted(l.head, rows, l.columns))
	return err
}

// Widths of columns that are cut.
const (
	betweenColumns = 2
	leastColumn    = 8
)

// fitted aligns rows in a line of so many characters. Long cells are cut: those of the last column, which often are
// free text, and then those of the widest. If that is not enough, each cell has a line.
func fitted(head []string, rows [][]string, columns int) string {
	widths, total := make([]int, len(head)), 0
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.NewReplacer("\n", " ", "\t", " ").Replace(config.PrintableText(cell))
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, w := range widths {
		total += w + betweenColumns
	}
	for total -= betweenColumns; total > columns; total-- {
		widest := len(widths) - 1
		for i, w := range widths {
			if w > widths[widest] && widths[len(widths)-1] <= leastColumn {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			return inLines(head, rows)
		}
		widths[widest]--
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += padded(cell, widths[i]) + strings.Repeat(" ", betweenColumns)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// padded is text with so many characters.
func padded(text string, width int) string {
	n := utf8.RuneCountInString(text)
	if n > width {
		return string([]rune(text)[:width-1]) + "…"
	}
	return text + strings.Repeat(" ", width-n)
}

// inLines has a line for each cell that says something, and an empty one between two rows.
func inLines(head []string, rows [][]string) string {
	width, blocks := 0, []string{}
	for _, name := range head {
		width = max(width, utf8.RuneCountInString(name))
	}
	for n, row := range rows {
		block := ""
		for i, cell := range row {
			if cell != "" && cell != "-" && !(n == 0 && cell == head[i]) {
				block += padded(strings.ToLower(head[i]), width) + "  " + cell + "\n"
			}
		}
		if block != "" {
			blocks = append(blocks, block)
		}
	}
	return strings.Join(blocks, "\n")
}

// Object prints one JSON object.
func (t *Terminal) Object(one any) error { return t.List(true).Add(one) }

// Table aligns columns that are separated by tabs.
func (t *Terminal) Table() *tabwriter.Writer { return tabwriter.NewWriter(t.Out, 0, 8, 2, ' ', 0) }

// Wrapped breaks text between words, so that lines have at most so many characters; 0 = any. Further lines begin with
// indent spaces. A word that is longer stays whole: someone may copy it. The text may have colors.
func Wrapped(text string, columns, indent int) string {
	if columns <= indent+leastColumn || shown(text) <= columns {
		return text
	}
	var b strings.Builder
	at, broken := 0, false // broken: the line has nothing yet but its indent
	for i, word := range strings.Split(text, " ") {
		n := shown(word)
		switch {
		case i == 0 || broken && at == indent:
		case at+1+n > columns && at > indent:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at, broken = indent, true
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// color is what a terminal takes for a color and does not show.
var color = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// shown is how many characters of a text a terminal shows.
func shown(text string) int { return utf8.RuneCountInString(color.ReplaceAllString(text, "")) }
