package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
)

//go:embed page.html
var pageText string

// page is the report as one HTML file that needs nothing else.
func (r *Report) page() ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"metrics": metrics,
		"svg":     func(p plot) template.HTML { return template.HTML(p.svg) }, //nolint:gosec // made here, names escaped
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
		"title":     func(p plot) string { return p.title },
		"name":      func(m metric) string { return m.name },
		"disturbed": func(c Result) bool { _, d := c.quiet(); return d },
	}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{"Report": r, "Plots": r.plots(), "Limit": foreignLimit})
	return out.Bytes(), err
}
