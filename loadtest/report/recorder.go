package report

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Recorder stores latencies with a precision of one thousandth, from a microsecond to ten minutes. It is for one
// goroutine at a time.
type Recorder struct{ Hist *hdrhistogram.Histogram }

func NewRecorder() *Recorder {
	return &Recorder{hdrhistogram.New(int64(time.Microsecond), int64(10*time.Minute), 3)}
}

func (r *Recorder) Record(d time.Duration) {
	// Longer latencies count as ten minutes, so there is no error.
	_ = r.Hist.RecordValue(int64(min(max(d, 0), 10*time.Minute)))
}

// percentiles are the reported ones, and the additional ones for the curve.
var percentiles = []struct {
	name string // "": only in the curve
	p    float64
}{
	{"p50 ms", 50}, {"", 75}, {"p90 ms", 90}, {"", 95}, {"", 97.5}, {"p99 ms", 99}, {"", 99.5}, {"", 99.75},
	{"p99.9 ms", 99.9}, {"", 99.95}, {"p99.99 ms", 99.99}, {"max ms", 100},
}

// Point is a point of a latency curve.
type Point struct {
	Percentile float64 `json:"percentile"`
	MS         float64 `json:"ms"`
}

// Report adds the percentiles to metrics and returns the curve. It leaves out a percentile for which there are too few
// values: p99.9 of 500 events would only be the maximum.
func (r *Recorder) Report(metrics map[string]float64) []Point {
	var curve []Point
	n := float64(r.Hist.TotalCount())
	for _, p := range percentiles {
		if n == 0 || p.p < 100 && n*(1-p.p/100) < 1 {
			continue
		}
		ms := r.At(p.p)
		curve = append(curve, Point{p.p, ms})
		if p.name != "" {
			metrics[p.name] = ms
		}
	}
	return curve
}

// At returns a percentile in milliseconds.
func (r *Recorder) At(p float64) float64 {
	return float64(r.Hist.ValueAtPercentile(p)) / float64(time.Millisecond)
}
