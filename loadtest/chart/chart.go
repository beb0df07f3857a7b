package chart

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strings"
)

// Chart draws lines over axes.
type Chart struct {
	Title, XLabel, YLabel string
	XTicks                []Mark
	YLog                  bool
	Height                int // height between the axes in pixels; 0: plotHeight
	Lines                 []Line
}

type Line struct {
	Name   string
	Points []Point
}

type Point struct {
	X, Y      float64
	Low, High float64 // range of the value; both 0: unknown
	Hollow    bool
}

// Mark is a position on an axis, and its label.
type Mark struct {
	At   float64
	Text string
}

// Sizes in a chart, in pixels. The names are below the axes.
const (
	chartWidth  = 720
	PlotHeight  = 300
	marginLeft  = 70
	marginRight = 20
	marginTop   = 46
	marginAxis  = 44
	legendLine  = 18
	legendNames = 3 // names in a row
)

// colour returns a colour on white. Most people with a colour vision deficiency can distinguish these colours.
func colour(i int) string {
	list := []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#7f7f7f", "#8c564b",
		"#b8a800", "#5b2a86", "#b22222"}
	return list[i%len(list)]
}

// scale maps values to pixels.
type scale struct {
	from, to     float64 // values
	start, width float64 // pixels; the width of a vertical scale is negative
	log          bool
}

func (s scale) at(v float64) float64 {
	a, b := s.from, s.to
	if s.log {
		v, a, b = math.Log(v), math.Log(a), math.Log(b)
	}
	if a == b {
		return s.start
	}
	return s.start + (v-a)/(b-a)*s.width
}

// SVG draws the chart.
func (c Chart) SVG() string {
	c.Height = cmp.Or(c.Height, PlotHeight)
	x, y, ticks := c.scales()
	bottom := float64(marginTop + c.Height)
	d := newDrawing(chartWidth, c.allHeight(), c.Title)
	for _, t := range ticks {
		d.segment(marginLeft, y.at(t.At), chartWidth-marginRight, y.at(t.At), "#dddddd")
		d.text(marginLeft-6, y.at(t.At)+4, "end", t.Text)
	}
	for _, t := range c.XTicks {
		d.segment(x.at(t.At), marginTop, x.at(t.At), bottom, "#eeeeee")
		d.text(x.at(t.At), bottom+16, "middle", t.Text)
	}
	d.text(chartWidth-marginRight, bottom+34, "end", c.XLabel)
	d.text(marginLeft-6, marginTop-16, "end", c.YLabel)
	for i, l := range c.Lines {
		d.line(l, x, y, colour(i))
		if len(c.Lines) == 1 {
			break // the axis has its name
		}
		left, at := marginLeft+float64(i%legendNames*(chartWidth-marginLeft)/legendNames), bottom+marginAxis+12+
			float64(legendLine*(i/legendNames))
		d.wide(left, at, left+24, at, colour(i))
		d.text(left+30, at+4, "start", l.Name)
	}
	return d.end()
}

// allHeight is the height of the whole picture.
func (c Chart) allHeight() int {
	return marginTop + cmp.Or(c.Height, PlotHeight) + marginAxis + legendLine*((len(c.Lines)+legendNames-1)/legendNames) +
		16
}

// Stacked draws charts one below the other.
func Stacked(charts ...Chart) string {
	inner, height := "", 0
	for _, c := range charts {
		inner += strings.Replace(c.SVG(), "<svg ", fmt.Sprintf(`<svg y="%d" `, height), 1)
		height += c.allHeight()
	}
	d := newDrawing(chartWidth, height, "")
	d.WriteString(inner)
	return d.end()
}

// scales returns scales that cover all points and ticks.
func (c Chart) scales() (x, y scale, ticks []Mark) {
	x = scale{math.Inf(1), math.Inf(-1), marginLeft + 10, chartWidth - marginLeft - marginRight - 20, false}
	y = scale{math.Inf(1), math.Inf(-1), float64(marginTop + c.Height), -float64(c.Height), c.YLog}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			x.from, x.to = min(x.from, p.X), max(x.to, p.X)
			y.from, y.to = min(y.from, p.Y), max(y.to, p.Y, p.High)
			if p.Low > 0 {
				y.from = min(y.from, p.Low)
			}
		}
	}
	for _, t := range c.XTicks {
		x.from, x.to = min(x.from, t.At), max(x.to, t.At)
	}
	if c.YLog {
		ticks = logTicks(max(y.from, 1e-3), max(y.to, 1e-3))
	} else {
		ticks = linearTicks(max(y.to, 1e-9))
	}
	y.from, y.to = ticks[0].At, ticks[len(ticks)-1].At
	return x, y, ticks
}

// linearTicks returns 4 to 10 round numbers from 0 to above v.
func linearTicks(v float64) []Mark {
	step := math.Pow(10, math.Floor(math.Log10(v)))
	switch {
	case v/step < 2:
		step /= 5
	case v/step < 5:
		step /= 2
	}
	var list []Mark
	for i := 0; ; i++ {
		at := float64(i) * step
		list = append(list, Mark{at, number(at)})
		if at >= v {
			return list
		}
	}
}

// logTicks returns 1, 2 and 5 of each power of ten, from below a to above b.
func logTicks(a, b float64) []Mark {
	var list []Mark
	for decade := math.Pow(10, math.Floor(math.Log10(a))); ; decade *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			at := decade * digit
			if len(list) == 1 && at <= a {
				list = nil // begin as near to a as possible
			}
			list = append(list, Mark{at, number(at)})
			if at >= b && len(list) > 1 {
				return list
			}
		}
	}
}

// number formats v for people.
func number(v float64) string {
	if v >= 1_000_000 {
		return fmt.Sprintf("%gM", math.Round(v/1e5)/10)
	}
	if v >= 10_000 {
		return fmt.Sprintf("%gk", math.Round(v/100)/10)
	}
	return fmt.Sprintf("%g", math.Round(v*1e6)/1e6)
}

// drawing builds an SVG.
type drawing struct{ strings.Builder }

func newDrawing(width, height int, title string) *drawing {
	d := &drawing{}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(d, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	if title == "" {
		return d
	}
	fmt.Fprintf(d, `<text x="%d" y="16" text-anchor="middle" font-size="13">%s</text>`+"\n", width/2, html.EscapeString(title))
	return d
}

func (d *drawing) segment(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

// wide draws a line as thick as those of the legend.
func (d *drawing) wide(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>`+"\n", x1, y1, x2, y2, colour)
}

func (d *drawing) text(x, y float64, anchor, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
}

func (d *drawing) line(l Line, x, y scale, colour string) {
	var path []string
	for _, p := range l.Points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.X), y.at(max(p.Y, 1e-9))))
	}
	fmt.Fprintf(d, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.Join(path, " "), colour)
	for i, p := range l.Points {
		if p.High > 0 {
			d.segment(x.at(p.X), y.at(max(p.Low, y.from)), x.at(p.X), y.at(p.High), colour)
		}
		at, fill := strings.Split(path[i], ","), colour
		if p.Hollow {
			fill = "#ffffff"
		}
		fmt.Fprintf(d, `<circle cx="%s" cy="%s" r="3" fill="%s" stroke="%s"><title>%s: %.4g</title></circle>`+"\n", at[0], at[1], fill, colour, html.EscapeString(l.Name),
			p.Y)
	}
}

func (d *drawing) end() string { return d.String() + "</svg>\n" }
