package console

import (
	"fmt"
	"html/template"
	"strings"
)

const sparkWidth, sparkHeight = 240, 40

// spark draws the last values of a figure as a line, for a page. label says what it is, for those who do not see it.
func spark(label string, values []float64) template.HTML {
	if len(values) < 2 {
		return ""
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	var line strings.Builder
	step, top := float64(sparkWidth)/float64(maxSamples-1), max(high, 1e-9)
	from := float64(sparkWidth) - step*float64(len(values)-1)
	for i, v := range values {
		fmt.Fprintf(&line, "%.1f,%.1f ", from+step*float64(i), 2+(sparkHeight-4)*(1-v/top))
	}
	points := strings.TrimSpace(line.String())
	//nolint:gosec // numbers, and an escaped text
	return template.HTML(fmt.Sprintf(`<svg class="spark" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s"><polygon points="%.1f,%d %s %d,%d"/><polyline points="%s"/></svg>`,
		sparkWidth, sparkHeight, template.HTMLEscapeString(fmt.Sprintf("%s: %.3g to %.3g", label, low, high)), from,
		sparkHeight, points, sparkWidth, sparkHeight, points))
}
