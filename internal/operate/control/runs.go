package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
)

// Endpoints about the run history.
var (
	RunsList = Endpoint[ListRuns, runs.Page]{
		Name:    "runs.list",
		Doc:     "Lists records of ended attempts, the newest first.",
		Owner:   func(q *ListRuns) *string { return &q.Owner },
		Worker:  func(q *ListRuns) *string { return &q.Worker },
		Guarded: true,
		Retry:   IfUnanswered,
		handle:  (*Server).runs,
	}
	RunsShow = Endpoint[RunID, *runs.Record]{
		Name:    "runs.show",
		Doc:     "Returns the record of an ended attempt with its log lines.",
		Owner:   func(q *RunID) *string { return &q.by },
		Guarded: true,
		Retry:   IfUnanswered,
		handle:  (*Server).run,
	}
)

// ListRuns chooses records of the run history. Empty fields choose all.
type ListRuns struct {
	runs.Filter        // Worker is WORKER or OWNER/WORKER
	Before      uint64 `json:"before,omitempty"` // only smaller IDs
	Limit       int    `json:"limit,omitempty"`  // 1 to runs.MaxPage; 0: 100
	Lines       bool   `json:"lines,omitempty"`  // with their log lines, as far as these fit the answer
}

// Parse returns the filter. Its error is an *Error with the wrong field.
func (r ListRuns) Parse() (runs.Filter, error) {
	f := r.Filter
	if err := SplitWorker(&f.Owner, &f.Worker); err != nil {
		return f, err
	}
	var wrong *runs.FieldError
	if errors.As(f.Check(), &wrong) {
		return f, wrongField(wrong.Field, " %s", wrong.Text)
	}
	if r.Limit < 0 || r.Limit > runs.MaxPage {
		return f, wrongField("limit", " is %d: it is 1 to %d, or 0 for 100", r.Limit, runs.MaxPage)
	}
	return f, nil
}

// runs lists records of the run history.
func (o *Operations) runs(ctx context.Context, r ListRuns) (runs.Page, error) {
	f, err := r.Parse()
	if err != nil {
		return runs.Page{}, err
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return runs.Page{}, err
	}
	page, err := runs.NewStore(o.js, o.subjects).Newest(ctx, f, r.Before, limit)
	if err != nil {
		return page, historyError(err)
	}
	room := o.answerRoom()
	for i, rec := range page.Records {
		text, err := fitted(rec, r.Lines, room)
		if err != nil {
			return page, err
		}
		if room -= text + 1; room < 0 && i > 0 {
			page.Next, page.Records = page.Records[i-1].Seq, page.Records[:i]
			break
		}
	}
	return page, nil
}

// fitted removes the lines of a record that are not wanted or do not fit, and returns how long its JSON is.
func fitted(rec *runs.Record, lines bool, room int) (int, error) {
	if !lines {
		rec.LinesLost, rec.Lines = rec.LinesLost+len(rec.Lines), nil
	}
	text, err := json.Marshal(rec)
	if err == nil && len(text) > room && rec.Lines != nil {
		return fitted(rec, false, room)
	}
	return len(text), err
}

// RunID names one record of the run history.
type RunID struct {
	ID    uint64 `json:"id"`
	asker        // a record of another owner is not found
}

// run returns a record of the run history.
func (o *Operations) run(ctx context.Context, r RunID) (*runs.Record, error) {
	if r.ID == 0 {
		return nil, wrongField("id", " is missing: it is the number of a run")
	}
	rec, err := runs.NewStore(o.js, o.subjects).Get(ctx, r.ID)
	if err == nil && r.by != "" && rec.Owner != r.by {
		err = runs.ErrNone // an owner learns nothing of others' runs
	}
	if err != nil {
		return nil, historyError(fmt.Errorf("run %d: %w", r.ID, err))
	}
	_, err = fitted(rec, true, o.answerRoom())
	return rec, err
}

// historyError gives errors of the run history their codes.
func historyError(err error) error {
	switch {
	case errors.Is(err, runs.ErrNoHistory):
		return &Error{Code: http.StatusNotFound, Text: runs.ErrNoHistory.Error()}
	case errors.Is(err, runs.ErrNone):
		return &Error{Code: http.StatusNotFound, Text: "there is no such run: " + err.Error()}
	}
	return err
}
