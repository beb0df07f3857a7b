package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

// Checker loads a worker's module in a real isolate and reports which handlers it has. Of a module with a queue
// handler, Task is among the kinds only if it has a task handler too. A fault in the module is an *events.Failure with
// a stack in the author's files. The error of the context means that there was no check.
type Checker interface {
	Check(ctx context.Context, w *workers.Worker) (workers.Handlers, error)
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
func load(ctx context.Context, w workers.Worker, check Checker) (has workers.Handlers, err error) {
	has, err = check.Check(ctx, &w)
	var failure *events.Failure
	if errors.As(err, &failure) && failure.Reason == events.ReasonNoHandler && failure.Stack == "" {
		has, err = workers.Handlers{}, nil // handlerPosition is a better place
	}
	switch {
	case errors.As(err, &failure):
		return has, &RefusedError{w.Target(), failure}
	case err != nil:
		return has, fmt.Errorf("check %s: %w", w.Target(), err)
	case len(has.Kinds) == 0 && !has.Queue && !has.Entrypoints && w.Assets == nil:
		return has, misfitting(&w, "no handler: the module exports no default object or class with fetch, task, queue or scheduled, and adds no event listener")
	case has.Queue && slices.Contains(has.Kinds, events.Task):
		return has, misfitting(&w, "the module has a queue handler and a task handler: both take its tasks, so keep one of them")
	case has.Queue:
		has.Kinds = append(has.Kinds, events.Task)
		slices.Sort(has.Kinds)
	}
	return has, nil
}

// checkHandlers refuses a manifest that needs a handler which the module does not have.
func checkHandlers(w *workers.Worker) error {
	switch {
	case len(w.Schedules) > 0 && !slices.Contains(w.Handlers, events.Scheduled):
		return misfitting(w, "the manifest has schedules, and the module has no scheduled handler")
	case len(w.Sources) > 0 && !takesTasks(w):
		return misfitting(w, "the manifest has sources, and the module has no task or queue handler, which would get their messages")
	case w.Batch != nil && !w.Queue:
		return misfitting(w, "the manifest has a batch, and the module has no queue handler, which would get it")
	}
	return nil
}

// misfitting refuses a worker because of its handlers.
func misfitting(w *workers.Worker, why string) error {
	return &RefusedError{w.Target(), events.NewFailure(events.ReasonNoHandler, why, "    at "+handlerPosition(w))}
}

// handlerPosition is where handlers are expected: the default export of the module, or else its beginning.
func handlerPosition(w *workers.Worker) string {
	m, err := sourcemap.Parse(w.SourceMap)
	if err != nil {
		return w.File + ":1:1"
	}
	lines := strings.Split(w.Code, "\n")
	if name := defaultExport(w.Code); name != "" {
		for i, line := range lines {
			if !strings.HasPrefix(line, "var "+name+" =") && !strings.HasPrefix(line, "class "+name+" ") {
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
