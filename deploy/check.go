package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/sourcemap"
)

// Checker loads a worker's module in a real isolate and reports which handlers it has. A fault in the module is an
// *events.Failure with a stack in the author's files. The error of the context means that there was no check.
type Checker interface {
	Check(ctx context.Context, w *events.Worker) ([]events.Kind, error)
}

// RefusedError says that a worker was not deployed because its module does not load or lacks a handler.
type RefusedError struct {
	Target  string // "owner/name"
	Failure *events.Failure
}

// Error is the failure with its stack. The first frame is the place of the fault.
func (e *RefusedError) Error() string {
	text := e.Target + " is refused: " + e.Failure.Message
	if stack := strings.TrimRight(e.Failure.Stack, "\n"); stack != "" {
		text += "\n" + stack
	}
	return text
}

// Unwrap is the failure.
func (e *RefusedError) Unwrap() error { return e.Failure }

// load asks check for the worker's handlers. check gets a copy of the worker, which it may keep.
func load(ctx context.Context, w events.Worker, check Checker) ([]events.Kind, error) {
	kinds, err := check.Check(ctx, &w)
	var failure *events.Failure
	if errors.As(err, &failure) && failure.Reason == events.ReasonNoHandler && failure.Stack == "" {
		kinds, err = nil, nil // handlerPosition is a better place
	}
	switch {
	case errors.As(err, &failure):
		return nil, &RefusedError{w.Target(), failure}
	case err != nil:
		return nil, fmt.Errorf("check %s: %w", w.Target(), err)
	case len(kinds) == 0 && w.Assets == nil:
		return nil, &RefusedError{w.Target(), events.NewFailure(events.ReasonNoHandler,
			"no handler: the module exports no default object with fetch, task or scheduled, and adds no event listener",
			"    at "+handlerPosition(&w))}
	}
	return kinds, nil
}

// checkScheduled refuses schedules without a scheduled handler.
func checkScheduled(w *events.Worker) error {
	if len(w.Schedules) == 0 || slices.Contains(w.Handlers, events.Scheduled) {
		return nil
	}
	return &RefusedError{w.Target(), events.NewFailure(events.ReasonNoHandler,
		"the manifest has schedules, and the module has no scheduled handler", "    at "+handlerPosition(w))}
}

// handlerPosition is where handlers are expected: the default export of the module, or else its beginning.
func handlerPosition(w *events.Worker) string {
	m, err := sourcemap.Parse(w.SourceMap)
	if err != nil {
		return w.File + ":1:1"
	}
	lines := strings.Split(w.Code, "\n")
	if name := defaultExport(w.Code); name != "" {
		for i, line := range lines {
			if !strings.HasPrefix(line, "var "+name+" =") {
				continue
			}
			if p, ok := m.Position(i+1, 1); ok {
				return p.String()
			}
		}
	}
	// The source comes last in its bundle.
	for i := len(lines); i > 0; i-- {
		if p, ok := m.Position(i, 1); ok {
			return p.File + ":1:1"
		}
	}
	return w.File + ":1:1"
}

// defaultExport finds NAME in esbuild's "export { NAME as default };", which comes at the end.
func defaultExport(code string) string {
	i := strings.LastIndex(code, "\nexport {")
	if i < 0 {
		return ""
	}
	before, _, found := strings.Cut(code[i:], " as default")
	if !found {
		return ""
	}
	return before[strings.LastIndexAny(before, " ,{\n")+1:]
}
