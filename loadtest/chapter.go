package main

import "slices"

// chapter is what a report has of one load, or of one curve: a table, and what is drawn of it.
type chapter struct {
	title, about string // "" of a load
	table        table
	plots        []plot
}

// chapters are those that have something in them.
func (r *Report) chapters() []chapter {
	var list []chapter
	for _, load := range both() {
		if cases := r.measured(func(c Case) bool { return c.Load == load && c.Curve == "" }); len(cases) > 0 {
			list = append(list, chapter{table: r.table(cases), plots: loadPlots(load, cases)})
		}
	}
	var names []string
	for _, c := range r.Cases {
		if c.Curve != "" && !slices.Contains(names, c.Curve) {
			names = append(names, c.Curve)
		}
	}
	for _, name := range names {
		if cases := r.measured(func(c Case) bool { return c.Curve == name }); len(cases) > 0 {
			list = append(list, curveChapter(name, cases))
		}
	}
	return list
}

// measured are the cases with rounds that are wanted.
func (r *Report) measured(wanted func(Case) bool) []*Result {
	var list []*Result
	for i := range r.Cases {
		if c := &r.Cases[i]; len(c.Rounds) > 0 && wanted(c.Case) {
			list = append(list, c)
		}
	}
	return list
}
