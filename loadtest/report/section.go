package report

import "slices"

// section is the part of a report about one load or one curve: a table and its pictures.
type section struct {
	title, about string // "" for a load
	table        table
	Plots        []plot
}

// sections returns the sections that are not empty.
func (r *Report) sections() []section {
	var list []section
	for _, load := range []string{Saturation, OpenLoop} {
		if cases := r.measured(func(c Case) bool { return c.Load == load && c.Curve == "" && c.Web == "" }); len(cases) > 0 {
			list = append(list, section{table: r.table(cases), Plots: loadPlots(load, cases)})
		}
	}
	list = append(list, r.webSections()...)
	var names []string
	for _, c := range r.Cases {
		if c.Curve != "" && !slices.Contains(names, c.Curve) {
			names = append(names, c.Curve)
		}
	}
	for _, name := range names {
		if cases := r.measured(func(c Case) bool { return c.Curve == name }); len(cases) > 0 {
			list = append(list, r.curveSection(name, cases))
		}
	}
	return list
}

// measured returns the cases that wanted accepts and that have rounds.
func (r *Report) measured(wanted func(Case) bool) []*Result {
	var list []*Result
	for i := range r.Cases {
		if c := &r.Cases[i]; len(c.Rounds) > 0 && wanted(c.Case) {
			list = append(list, c)
		}
	}
	return list
}
