package terminal

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// blockRows is the number of rows whose columns are aligned with each other. So a long list is not kept in memory, and
// its first rows appear before its end is read.
const blockRows = 200

// List prints a list: as a table, or as one JSON object a line.
type List struct {
	table *tabwriter.Writer
	json  *json.Encoder // nil: a table
	rows  int
}

// List returns a List. head has the names of the columns.
func (t *Terminal) List(asJSON bool, head ...string) *List {
	l := &List{table: t.Table()}
	if asJSON {
		l.json = json.NewEncoder(t.Out)
		l.json.SetEscapeHTML(false)
		return l
	}
	fmt.Fprintln(l.table, strings.Join(head, "\t"))
	return l
}

// Add prints one: its JSON, or its cells.
func (l *List) Add(one any, cells ...any) error {
	if l.json != nil {
		return l.json.Encode(one)
	}
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(l.table, "\t")
		}
		fmt.Fprint(l.table, cell)
	}
	fmt.Fprintln(l.table)
	if l.rows++; l.rows%blockRows == 0 {
		return l.table.Flush()
	}
	return nil
}

// End prints what is left.
func (l *List) End() error { return l.table.Flush() }

// Object prints one JSON object.
func (t *Terminal) Object(one any) error { return t.List(true).Add(one) }

// Table aligns columns that are separated by tabs.
func (t *Terminal) Table() *tabwriter.Writer { return tabwriter.NewWriter(t.Out, 0, 8, 2, ' ', 0) }
