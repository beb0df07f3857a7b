package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func listDeadAtDoor(ctx context.Context, e *env, f control.Filter, asJSON bool) error {
	rows, unreadable := e.newLetterTable(), 0
	err := withDoor(e, func(c *control.Client) error {
		r := control.ListLetters{Filter: f}
		return everyPage(f.Limit, func(limit int) (int, bool, error) {
			r.Limit = limit
			page, err := c.DeadLetters(ctx, r)
			if err != nil {
				return 0, false, err
			}
			r.After = page.Next
			unreadable += len(page.Unreadable)
			for _, seq := range page.Unreadable {
				fmt.Fprintf(e.err, "pinwheel: message %d: not a dead letter\n", seq)
			}
			if asJSON {
				return len(page.Letters), page.Next != 0, encodeEach(e, page.Letters)
			}
			for _, j := range page.Letters {
				l, err := withoutBody(j)
				if err == nil {
					err = rows.add(l)
				}
				if err != nil {
					return 0, false, err
				}
			}
			return len(page.Letters) + len(page.Unreadable), page.Next != 0, nil
		})
	})
	if err == nil && !asJSON {
		err = rows.end()
	}
	if err == nil && unreadable > 0 {
		return silent(exitFailure)
	}
	return err
}

// withoutBody returns a letter of a list.
func withoutBody(j *events.LetterJSON) (*events.DeadLetter, error) {
	head := *j
	head.BodyBytes, head.Body, head.BodyBase64 = 0, nil, nil
	return head.Letter()
}

func showDeadAtDoor(ctx context.Context, e *env, id uint64, asJSON bool) error {
	return withDoor(e, func(c *control.Client) error {
		j, err := c.DeadLetter(ctx, control.LetterID{ID: id})
		if err != nil {
			return listsThemDead(err)
		}
		if asJSON {
			return encodeEach(e, []*events.LetterJSON{j})
		}
		l, err := j.Letter()
		if err != nil { // the body did not fit into the answer
			if l, err = withoutBody(j); err != nil {
				return err
			}
			fmt.Fprintf(e.err, "pinwheel: the body has %d bytes, too many for an answer\n", j.BodyBytes)
		}
		return e.printLetter(l, nil)
	})
}

// listsThemDead adds to a "letter not found" error how to list the letters.
func listsThemDead(err error) error {
	var refused *control.Error
	if errors.As(err, &refused) && refused.Code == 404 {
		return fmt.Errorf("%w; 'pinwheel dead ls' lists them, 'pinwheel dead replays ID' says how the replay of one ended", err)
	}
	return err
}

// editRequest is an edit as a request.
func editRequest(d events.Edit) control.Edit {
	return control.Edit{BodyBase64: d.Body, Patch: d.Patch, SetHeaders: d.Set, RemoveHeaders: d.Remove}
}

// editBodyAtDoor lets the user change the body of a letter in an editor.
func editBodyAtDoor(ctx context.Context, e *env, c *control.Client, id uint64) ([]byte, error) {
	j, err := c.DeadLetter(ctx, control.LetterID{ID: id})
	if err != nil {
		return nil, listsThemDead(err)
	}
	l, err := j.Letter()
	if err != nil {
		return nil, fmt.Errorf("the body of dead letter %d is too large for an answer: change it with --patch or --data-file", id)
	}
	return e.editBody(ctx, l.Body)
}

func editDeadAtDoor(ctx context.Context, e *env, id uint64, ed *editing, edit events.Edit) error {
	return withDoor(e, func(c *control.Client) (err error) {
		if ed.editor || edit.Empty() {
			if edit.Body, err = editBodyAtDoor(ctx, e, c, id); err != nil {
				return err
			}
		}
		changed, err := c.EditDeadLetter(ctx, control.EditLetter{LetterID: control.LetterID{ID: id}, Edit: editRequest(edit)})
		if err != nil {
			return listsThemDead(err)
		}
		return printEdited(e, changed.Was, changed.ID)
	})
}

func printEdited(e *env, was, id uint64) (err error) {
	if was == id {
		_, err = fmt.Fprintf(e.out, "%d stays as it is: nothing was changed\n", id)
	} else {
		_, err = fmt.Fprintf(e.out, "%d is %d now\n", was, id)
	}
	return err
}

func listReplaysAtDoor(ctx context.Context, e *env, r control.ReplayFilter, asJSON bool) error {
	return withDoor(e, func(c *control.Client) error {
		list, err := c.Replays(ctx, r)
		if err != nil {
			return err
		}
		if list.Left > 0 {
			fmt.Fprintf(e.err, "pinwheel: %d older ones are left out\n", list.Left)
		}
		t, err := newReplayTable(e, asJSON)
		for _, one := range list.Replays {
			if err == nil {
				err = t.add(one)
			}
		}
		if err != nil {
			return err
		}
		return t.end(r.IDs, func(uint64) string { return "" })
	})
}

// jobPoll is how often the state of a job is asked for.
const jobPoll = 200 * time.Millisecond

// actAtDoor starts a job that acts on letters, and follows it to its end. If the command is interrupted, it cancels the
// job.
func actAtDoor(ctx context.Context, e *env, a action, asJSON bool, start func(*control.Client) (control.Job, error)) error {
	return withDoor(e, func(c *control.Client) error {
		j, err := start(c)
		if err != nil {
			return listsThemDead(err)
		}
		for j.State == "running" {
			select {
			case <-ctx.Done():
				cancelled, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				defer stop()
				if last, err := c.CancelJob(cancelled, control.JobName{Job: j.Job}); err == nil {
					j = last
				}
				return fmt.Errorf("%w after %d of at most %d letters; nothing is half done, and the same command goes on with the others", ctx.Err(), j.Done+j.Failed, j.Total)
			case <-time.After(jobPoll):
			}
			if j, err = c.Job(context.WithoutCancel(ctx), control.JobName{Job: j.Job}); err != nil {
				return err
			}
		}
		return printJob(e, a, &j, asJSON)
	})
}

// printJob prints the result of a job that has ended.
func printJob(e *env, a action, j *control.Job, asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(e.out).Encode(j); err != nil {
			return err
		}
	} else {
		for _, failed := range j.Errors {
			fmt.Fprintln(e.err, "pinwheel:", failed.Error)
		}
		fmt.Fprintln(e.out, summary(a, deadletter.Counts{Total: j.Total, Done: j.Done, Failed: j.Failed}))
	}
	switch {
	case j.State != "done":
		return fmt.Errorf("job %s of node %s %s: %s", j.Job, j.Node, j.State, j.Error)
	case j.Failed > 0:
		return silent(exitFailure)
	}
	return nil
}

func replayAtDoor(ctx context.Context, e *env, s *selection, args []string, ed *editing, o deadletter.ReplayOptions, to string, asJSON bool) error {
	sel, err := s.selected(args)
	if err != nil {
		return err
	}
	s.IDs = sel.IDs
	return actAtDoor(ctx, e, action{verb: "replayed", dryRun: o.DryRun}, asJSON, func(c *control.Client) (control.Job, error) {
		if ed.editor {
			if len(s.IDs) != 1 {
				return control.Job{}, usage("--editor edits one letter: name its id")
			}
			body, err := editBodyAtDoor(ctx, e, c, s.IDs[0])
			if err != nil {
				return control.Job{}, err
			}
			o.Edit.Body = body
		}
		return c.Replay(ctx, control.Replay{
			Selection: s.Selection, Edit: editRequest(o.Edit), Rate: o.Rate, MaxReplays: o.MaxReplays, Force: o.Force, To: to,
		})
	})
}

func purgeAtDoor(ctx context.Context, e *env, s *selection, args []string, asJSON bool) error {
	sel, err := s.selected(args)
	if err != nil {
		return err
	}
	s.IDs = sel.IDs
	return actAtDoor(ctx, e, removed(s.DryRun), asJSON, func(c *control.Client) (control.Job, error) { return c.Purge(ctx, s.Selection) })
}
