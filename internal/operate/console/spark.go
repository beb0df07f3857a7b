package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

const sparkWidth, sparkHeight = 240, 40

// chart is the line of a figure, with what its axes say.
type chart struct {
	What   string // what it shows, for those who do not see it
	Line   string // the points of the line
	Area   string // and of the area below it
	Top    string // what the upper edge stands for
	Low    string // the smallest and the largest value
	High   string
	Values string // of all points, oldest first, as people read them, for the script: separated by |
	Every  int    // seconds between two points
	Points int    // that a whole line has
	Window string // the time that a whole line shows
}

// axis is the time between two points of a line, and how many points a whole one has.
type axis struct {
	every  time.Duration
	points int
}

// units write the values of figures.
var units = map[string]func(float64) string{
	"rate":   func(v float64) string { return flow.Rate(v) + "/s" },
	"ms":     func(v float64) string { return flow.Milliseconds(&v) },
	"minute": func(v float64) string { return number(int64(v)) + "/min" },
	"count":  func(v float64) string { return number(int64(v)) },
}

// spark draws the last values of a figure as a line, for a page. unit is one of units.
func spark(what, unit string, values []float64) *chart {
	return draw(what, unit, values, axis{sampleEvery, maxSamples})
}

func draw(what, unit string, values []float64, a axis) *chart {
	if len(values) < 2 {
		return nil
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	write := units[unit]
	c := &chart{What: what, Top: write(high), Low: write(low), High: write(high),
		Every: int(a.every / time.Second), Points: a.points,
		Window: coarse((time.Duration(a.points-1) * a.every).Round(time.Minute))}
	var line strings.Builder
	step, top := float64(sparkWidth)/float64(a.points-1), max(high, 1e-9)
	from := float64(sparkWidth) - step*float64(len(values)-1)
	texts := make([]string, len(values))
	for i, v := range values {
		fmt.Fprintf(&line, "%.1f,%.1f ", from+step*float64(i), 2+(sparkHeight-4)*(1-v/top))
		texts[i] = write(v)
	}
	c.Line, c.Values = strings.TrimSpace(line.String()), strings.Join(texts, "|")
	c.Area = fmt.Sprintf("%.1f,%d %s %d,%d", from, sparkHeight, c.Line, sparkWidth, sparkHeight)
	return c
}

// sparkBox is the coordinates of all lines.
func sparkBox() template.HTMLAttr {
	return template.HTMLAttr(fmt.Sprintf(`viewBox="0 0 %d %d"`, sparkWidth, sparkHeight)) //nolint:gosec // two numbers
}
