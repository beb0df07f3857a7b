package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Report has everything that a run of this program measured. It is the content of the JSON file.
type Report struct {
	Machine Machine   `json:"machine"`
	Command []string  `json:"command"` // arguments
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Cases   []Result  `json:"cases"`

	Curves []CurveText `json:"-"` // what is known of curves
}

// Result has the rounds of a case.
type Result struct {
	Case
	Rounds []Round `json:"rounds"`
}

// ForeignLimit is how many cores other processes may use during an undisturbed round.
const ForeignLimit = 0.25

// Round is one run of a case.
type Round struct {
	Metrics     map[string]float64 `json:"metrics"`
	Curve       []Point            `json:"curve,omitempty"`       // latency
	Disturbed   bool               `json:"disturbed,omitempty"`   // other processes used more than foreignLimit, repeatedly
	Redelivered int                `json:"redelivered,omitempty"` // number of replies of events that ran again
}

// New begins a report about cases. Its curves are of the known ones.
func New(ctx context.Context, cases []Case, known []CurveText) *Report {
	r := &Report{Machine: thisMachine(ctx), Command: os.Args[1:], Started: time.Now().UTC(), Curves: known}
	for _, c := range cases {
		r.Cases = append(r.Cases, Result{Case: c})
	}
	return r
}

// quiet returns the rounds that count: the undisturbed ones, or all if there are none.
func (r *Result) quiet() (rounds []Round, disturbed bool) {
	for _, one := range r.Rounds {
		if !one.Disturbed {
			rounds = append(rounds, one)
		}
	}
	if len(rounds) == 0 {
		return r.Rounds, true
	}
	return rounds, false
}

// summary summarizes a metric. It returns false when the case does not have it. A percentile that only some rounds have
// is left out.
func (r *Result) summary(name string) (summary, bool) {
	rounds, _ := r.quiet()
	var values []float64
	for _, one := range rounds {
		if v, ok := one.Metrics[name]; ok {
			values = append(values, v)
		}
	}
	return summarize(values), len(values) > 0 && len(values) == len(rounds)
}

// curve returns the medians of the rounds' curves.
func (r *Result) curve() []Point {
	rounds, _ := r.quiet()
	var points []Point
	for i := 0; ; i++ {
		var values []float64
		for _, one := range rounds {
			if i < len(one.Curve) {
				values = append(values, one.Curve[i].MS)
			}
		}
		if len(values) == 0 || len(values) < len(rounds) {
			return points
		}
		points = append(points, Point{rounds[0].Curve[i].Percentile, summarize(values).median})
	}
}

// Files are where a report is written to. An empty name is not written.
type Files struct {
	JSON  string // everything measured
	HTML  string // a page
	Plots string // a folder for the pictures
	Doc   string // PAGE#SECTION of a Markdown page
}

// Write writes the requested files.
func (r *Report) Write(to Files) error {
	if to.JSON != "" {
		if err := r.writeJSON(to.JSON); err != nil {
			return err
		}
	}
	if to.HTML != "" {
		text, err := r.page()
		if err != nil {
			return err
		}
		if err := os.WriteFile(to.HTML, text, 0o644); err != nil {
			return err
		}
	}
	if to.Plots != "" {
		if err := r.writePlots(to.Plots); err != nil {
			return err
		}
	}
	if to.Doc != "" {
		return r.document(to.Doc)
	}
	return nil
}

func (r *Report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Keep saves the measurements after an error, beside the requested JSON file, and says so.
func (r *Report) Keep(path string) string {
	if path == "" {
		return ""
	}
	r.Ended = time.Now().UTC()
	path += ".incomplete"
	if err := r.writeJSON(path); err != nil {
		return fmt.Sprintf(" (%v)", err)
	}
	return ", what was measured before is in " + path
}

func (r *Report) writePlots(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range r.plots() {
		if err := os.WriteFile(filepath.Join(dir, p.File), []byte(p.SVG), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Read reads a file that write wrote as JSON. Its curves are of the known ones.
func Read(path string, known []CurveText) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Report{Curves: known}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no file that --json wrote: %w", path, err)
	}
	return r, nil
}
