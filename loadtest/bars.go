package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

const (
	barLine   = 24 // pixels from one bar to the next
	letter    = 7  // pixels of a letter, nearly
	valueRoom = 70 // for the number behind a bar
	barTop    = 34
)

// bars draws the medians of a metric, one below the other, with lines from the least to the most.
func bars(title string, cases []*Result, name string) string {
	longest, labels := 0, shortNames(cases)
	least, top := math.Inf(1), 0.0
	for i, c := range cases {
		longest = max(longest, utf8.RuneCountInString(labels[i]))
		if s, ok := c.summary(name); ok {
			least, top = min(least, s.min), max(top, s.max)
		}
	}
	left := float64(longest*letter + 16)
	x := scale{0, top, left, chartWidth - left - valueRoom, false}
	if wide(least, top) {
		x.log, x.from = true, least/2
		title += " (logarithmic)"
	}
	d := newDrawing(chartWidth, barTop+barLine*len(cases)+10, title)
	for i, c := range cases {
		s, ok := c.summary(name)
		if !ok {
			continue
		}
		y := float64(barTop + barLine*i)
		fill := colour(1)
		if c.System == ours {
			fill = colour(0)
		}
		d.text(left-8, y+13, "end", labels[i])
		fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="16" fill="%s"><title>%.4g, %.4g to %.4g</title></rect>`+"\n", left, y, x.at(s.median)-left, fill, s.median, s.min, s.max)
		d.segment(x.at(s.min), y+8, x.at(s.max), y+8, "#000000")
		d.text(x.at(s.max)+6, y+13, "start", fmt.Sprintf("%.*f", decimals(s.median), s.median))
	}
	return d.end()
}

// shortNames are the cases' without what all of them end with.
func shortNames(cases []*Result) []string {
	names := make([][]string, len(cases))
	for i, c := range cases {
		names[i] = strings.Fields(c.Name())
	}
	same := func() bool {
		for _, n := range names {
			if len(n) < 2 || n[len(n)-1] != names[0][len(names[0])-1] {
				return false
			}
		}
		return len(names) > 1
	}
	for same() {
		for i, n := range names {
			names[i] = n[:len(n)-1]
		}
	}
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.Join(n, " ")
	}
	return short
}

// wide reports whether values lie so far apart that the small ones would not be seen beside the large.
func wide(least, most float64) bool { return least > 0 && most/least > 50 }

func decimals(v float64) int {
	if v < 100 {
		return 1
	}
	return 0
}
