package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// blockRows is the number of rows whose columns are aligned with each other. So a long list is not kept in memory, and
// its first rows appear before its end is read.
const blockRows = 200

// printer prints a list: as a table, or as one JSON object a line.
type printer struct {
	table *tabwriter.Writer
	json  *json.Encoder // nil: a table
	rows  int
}

// list returns a printer of a list. head has the names of the columns.
func (e *env) list(asJSON bool, head ...string) *printer {
	p := &printer{table: e.table()}
	if asJSON {
		p.json = json.NewEncoder(e.out)
		p.json.SetEscapeHTML(false)
		return p
	}
	fmt.Fprintln(p.table, strings.Join(head, "\t"))
	return p
}

// add prints one: its JSON, or its cells.
func (p *printer) add(one any, cells ...any) error {
	if p.json != nil {
		return p.json.Encode(one)
	}
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(p.table, "\t")
		}
		fmt.Fprint(p.table, cell)
	}
	fmt.Fprintln(p.table)
	if p.rows++; p.rows%blockRows == 0 {
		return p.table.Flush()
	}
	return nil
}

// end prints what is left.
func (p *printer) end() error { return p.table.Flush() }

// object prints one JSON object.
func (e *env) object(one any) error { return e.list(true).add(one) }

// table aligns columns that are separated by tabs.
func (e *env) table() *tabwriter.Writer { return tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0) }
