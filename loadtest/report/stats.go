package report

import (
	"math"
	"slices"
)

// summary summarizes several rounds.
type summary struct {
	median, min, max float64
	n                int
}

func summarize(values []float64) summary {
	if len(values) == 0 {
		return summary{median: math.NaN(), min: math.NaN(), max: math.NaN()}
	}
	s := slices.Sorted(slices.Values(values))
	mid := len(s) / 2
	median := s[mid]
	if len(s)%2 == 0 {
		median = (s[mid-1] + s[mid]) / 2
	}
	return summary{median, s[0], s[len(s)-1], len(s)}
}

// spread is half the range, relative to the median.
func (s summary) spread() float64 {
	if s.median == 0 {
		return 0
	}
	return (s.max - s.min) / 2 / s.median
}

// apart reports whether all values of one summary are above all values of the other. With two times five rounds of the
// same thing that happens once in 126 times, with two times three once in 10. So a difference needs at least four
// rounds on each side.
func (s summary) apart(o summary) bool { return s.min > o.max || o.min > s.max }

// enough is how many rounds a difference needs on each side.
const enough = 4
