package main

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is lines over axes.
type chart struct {
	title, xLabel, yLabel string
	xTicks                []mark
	yLog                  bool
	height                int // of what is between the axes, pixels; 0: plotHeight
	lines                 []line
}

type line struct {
	name   string
	points []point
}

type point struct {
	x, y      float64
	low, high float64 // what it may as well be; both 0: that is not known
	hollow    bool
}

// mark is a place on an axis, and what stands there.
type mark struct {
	at   float64
	text string
}

// Sizes in a chart, pixels. Below the axes are the names.
const (
	chartWidth  = 720
	plotHeight  = 300
	marginLeft  = 70
	marginRight = 20
	marginTop   = 46
	marginAxis  = 44
	legendLine  = 18
	legendNames = 3 // beside each other
)

// colours can be told apart by most who do not see all of them, on white.
func colour(i int) string {
	list := []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#7f7f7f", "#8c564b", "#b8a800", "#5b2a86", "#b22222"}
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

// svg draws the chart.
func (c chart) svg() string {
	c.height = cmp.Or(c.height, plotHeight)
	x, y, ticks := c.scales()
	bottom := float64(marginTop + c.height)
	d := newDrawing(chartWidth, c.allHeight(), c.title)
	for _, t := range ticks {
		d.segment(marginLeft, y.at(t.at), chartWidth-marginRight, y.at(t.at), "#dddddd")
		d.text(marginLeft-6, y.at(t.at)+4, "end", t.text)
	}
	for _, t := range c.xTicks {
		d.segment(x.at(t.at), marginTop, x.at(t.at), bottom, "#eeeeee")
		d.text(x.at(t.at), bottom+16, "middle", t.text)
	}
	d.text(chartWidth-marginRight, bottom+34, "end", c.xLabel)
	d.text(marginLeft-6, marginTop-16, "end", c.yLabel)
	for i, l := range c.lines {
		d.line(l, x, y, colour(i))
		if len(c.lines) == 1 {
			break // its name is the axis's
		}
		left, at := marginLeft+float64(i%legendNames*(chartWidth-marginLeft)/legendNames), bottom+marginAxis+12+float64(legendLine*(i/legendNames))
		d.wide(left, at, left+24, at, colour(i))
		d.text(left+30, at+4, "start", l.name)
	}
	return d.end()
}

// allHeight is that of the whole picture.
func (c chart) allHeight() int {
	return marginTop + cmp.Or(c.height, plotHeight) + marginAxis + legendLine*((len(c.lines)+legendNames-1)/legendNames) + 16
}

// stacked draws charts one below the other.
func stacked(charts ...chart) string {
	inner, height := "", 0
	for _, c := range charts {
		inner += strings.Replace(c.svg(), "<svg ", fmt.Sprintf(`<svg y="%d" `, height), 1)
		height += c.allHeight()
	}
	d := newDrawing(chartWidth, height, "")
	d.WriteString(inner)
	return d.end()
}

// scales span all points and ticks.
func (c chart) scales() (x, y scale, ticks []mark) {
	x = scale{math.Inf(1), math.Inf(-1), marginLeft + 10, chartWidth - marginLeft - marginRight - 20, false}
	y = scale{math.Inf(1), math.Inf(-1), float64(marginTop + c.height), -float64(c.height), c.yLog}
	for _, l := range c.lines {
		for _, p := range l.points {
			x.from, x.to = min(x.from, p.x), max(x.to, p.x)
			y.from, y.to = min(y.from, p.y), max(y.to, p.y, p.high)
			if p.low > 0 {
				y.from = min(y.from, p.low)
			}
		}
	}
	for _, t := range c.xTicks {
		x.from, x.to = min(x.from, t.at), max(x.to, t.at)
	}
	if c.yLog {
		ticks = logTicks(max(y.from, 1e-3), max(y.to, 1e-3))
	} else {
		ticks = linearTicks(max(y.to, 1e-9))
	}
	y.from, y.to = ticks[0].at, ticks[len(ticks)-1].at
	return x, y, ticks
}

// linearTicks are 4 to 10 round numbers from 0 to above v.
func linearTicks(v float64) []mark {
	step := math.Pow(10, math.Floor(math.Log10(v)))
	switch {
	case v/step < 2:
		step /= 5
	case v/step < 5:
		step /= 2
	}
	var list []mark
	for i := 0; ; i++ {
		at := float64(i) * step
		list = append(list, mark{at, number(at)})
		if at >= v {
			return list
		}
	}
}

// logTicks are 1, 2 and 5 of each power of ten, from below a to above b.
func logTicks(a, b float64) []mark {
	var list []mark
	for decade := math.Pow(10, math.Floor(math.Log10(a))); ; decade *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			at := decade * digit
			if len(list) == 1 && at <= a {
				list = nil // begin as near as can be
			}
			list = append(list, mark{at, number(at)})
			if at >= b && len(list) > 1 {
				return list
			}
		}
	}
}

// number writes v as people read it.
func number(v float64) string {
	if v >= 1_000_000 {
		return fmt.Sprintf("%gM", math.Round(v/1e5)/10)
	}
	if v >= 10_000 {
		return fmt.Sprintf("%gk", math.Round(v/100)/10)
	}
	return fmt.Sprintf("%g", math.Round(v*1e6)/1e6)
}

// drawing is SVG in the making.
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

// wide is a segment as thick as a legend's.
func (d *drawing) wide(x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>`+"\n", x1, y1, x2, y2, colour)
}

func (d *drawing) text(x, y float64, anchor, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
}

func (d *drawing) line(l line, x, y scale, colour string) {
	var path []string
	for _, p := range l.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.x), y.at(max(p.y, 1e-9))))
	}
	fmt.Fprintf(d, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.Join(path, " "), colour)
	for i, p := range l.points {
		if p.high > 0 {
			d.segment(x.at(p.x), y.at(max(p.low, y.from)), x.at(p.x), y.at(p.high), colour)
		}
		at, fill := strings.Split(path[i], ","), colour
		if p.hollow {
			fill = "#ffffff"
		}
		fmt.Fprintf(d, `<circle cx="%s" cy="%s" r="3" fill="%s" stroke="%s"><title>%s: %.4g</title></circle>`+"\n", at[0], at[1], fill, colour, html.EscapeString(l.name), p.y)
	}
}

func (d *drawing) end() string { return d.String() + "</svg>\n" }
