package chart

import (
	"fmt"
	"math"
	"unicode/utf8"
)

const (
	barLine   = 24 // pixels from one bar to the next
	letter    = 7  // approximate width of a letter in pixels
	valueRoom = 70 // for the number after a bar
	barTop    = 34
)

// Bar is a value with its range.
type Bar struct {
	Name             string
	Median, Min, Max float64
	First            bool // in the first colour; otherwise in the second
}

// Bars draws values one below the other, with lines from the minimum to the maximum.
func Bars(title string, list []Bar) string {
	longest := 0
	least, top := math.Inf(1), 0.0
	for _, b := range list {
		longest = max(longest, utf8.RuneCountInString(b.Name))
		least, top = min(least, b.Min), max(top, b.Max)
	}
	left := float64(longest*letter + 16)
	x := scale{0, top, left, chartWidth - left - valueRoom, false}
	if Wide(least, top) {
		x.log, x.from = true, least/2
		title += " (logarithmic)"
	}
	d := newDrawing(chartWidth, barTop+barLine*len(list)+10, title)
	for i, b := range list {
		y := float64(barTop + barLine*i)
		fill := colour(1)
		if b.First {
			fill = colour(0)
		}
		d.text(left-8, y+13, "end", b.Name)
		fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="16" fill="%s"><title>%.4g, %.4g to %.4g</title></rect>`+"\n", left, y, x.at(b.Median)-left, fill, b.Median, b.Min,
			b.Max)
		d.segment(x.at(b.Min), y+8, x.at(b.Max), y+8, "#000000")
		d.text(x.at(b.Max)+6, y+13, "start", fmt.Sprintf("%.*f", decimals(b.Median), b.Median))
	}
	return d.end()
}

// Wide reports whether the range of the values is so wide that the small ones would be invisible beside the large ones.
func Wide(least, most float64) bool { return least > 0 && most/least > 50 }

func decimals(v float64) int {
	if v < 100 {
		return 1
	}
	return 0
}
