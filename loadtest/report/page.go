package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
)

//go:embed page.html
var pageText string

// page renders the report as one HTML file without external resources.
func (r *Report) page() ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"value": func(c Result, m metric) string {
			if s, ok := c.summary(m.name); ok {
				return fmt.Sprintf("%.*f", m.digits, s.median)
			}
			return ""
		},
		"span": func(c Result, m metric) string {
			if s, ok := c.summary(m.name); ok {
				return fmt.Sprintf("%.*f to %.*f in %d rounds", m.digits, s.min, m.digits, s.max, s.n)
			}
			return ""
		},
		"name":      func(m metric) string { return m.name },
		"disturbed": func(c Result) bool { _, d := c.quiet(); return d },
	}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	used := slices.DeleteFunc(metrics(), func(m metric) bool {
		return !slices.ContainsFunc(r.Cases, func(c Result) bool { _, ok := c.summary(m.name); return ok })
	})
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{"Report": r, "Sections": r.pageSections(), "Metrics": used,
		"Limit": ForeignLimit})
	return out.Bytes(), err
}

// pageSection is a section for the page.
type pageSection struct {
	Title, About string
	Rows         table
	Figures      []template.HTML
}

func (r *Report) pageSections() []pageSection {
	var list []pageSection
	for _, c := range r.sections() {
		p := pageSection{Title: c.title, About: c.about, Rows: c.table}
		for _, one := range c.Plots {
			p.Figures = append(p.Figures, template.HTML(one.SVG))
		}
		list = append(list, p)
	}
	return list
}
