package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
)

// letterCells is a letter in a list.
func letterCells(l *events.LetterJSON) []any {
	return []any{l.ID, stamped(l.At), l.Owner + "/" + l.Worker, l.Kind, l.Reason, l.Attempts, replayed(l),
		brief(l.Message)}
}

// replayed shows how often the letter was replayed, and whether it was edited.
func replayed(l *events.LetterJSON) string {
	if l.Edited.IsZero() {
		return fmt.Sprint(l.Replays)
	}
	return fmt.Sprint(l.Replays, " edited")
}

// brief makes text fit a table: one line without control characters, cut to length.
func brief(s string) string {
	const most = 72
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// printLetter prints l, and the replay that it came from, if that is known.
func printLetter(to *terminal.Terminal, l *events.DeadLetter, from *deadletter.Replayed) error {
	t := to.Table()
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	row("id", fmt.Sprint(l.Seq))
	row("owner", l.Owner)
	row("worker", l.Worker)
	row("version", l.Version)
	row("kind", l.Kind)
	row("reason", string(l.Failure.Reason))
	row("message", strings.ReplaceAll(l.Failure.Message, "\n", " "))
	row("attempts", fmt.Sprint(l.Attempts))
	row("first", stamped(l.FirstAt))
	row("last", stamped(l.At))
	row("replays", fmt.Sprint(l.Replays))
	if from != nil {
		row("came of", fmt.Sprintf("the replay of %d, %s", from.Letter, stamped(from.At)))
	}
	row("edited", maybeStamped(l.Edited))
	row("imported", maybeStamped(l.Imported))
	row("told", l.Hook.String())
	row("event id", l.EventID)
	row("stored as", fmt.Sprintf("%s, %s:%d", l.Subject, l.Stream, l.StreamSeq))
	row("node", l.Node)
	if l.Block != nil {
		row("header block", fmt.Sprintf("%d bytes: its headers are not those of a NATS message; --json has them as they were", len(l.Block)))
	}
	for _, name := range slices.Sorted(maps.Keys(l.Header)) {
		for _, v := range l.Header[name] {
			row("header", name+": "+v)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := printHistory(to, l.History); err != nil {
		return err
	}
	if stack := strings.TrimRight(l.Failure.Stack, "\n"); stack != "" {
		fmt.Fprintf(to.Out, "\n%s\n", stack)
	}
	return printBody(to, l.Body)
}

// maybeStamped formats t, or returns "" for the zero time.
func maybeStamped(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamped(t)
}

// printHistory prints the runs that failed.
func printHistory(to *terminal.Terminal, runs []events.FailedRun) error {
	if len(runs) == 0 {
		return nil
	}
	t := to.Table()
	fmt.Fprintln(t, "\nRUN\tFAILED\tREASON\tNODE\tMESSAGE")
	for _, r := range runs {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", r.Attempt, stamped(r.At), brief(string(r.Reason)), r.Node, brief(r.Message))
	}
	return t.Flush()
}

// maxShownBody is the largest body that is shown, in bytes. --json prints a body of any size.
const maxShownBody = 4 << 10

func printBody(to *terminal.Terminal, body []byte) (err error) {
	switch {
	case len(body) == 0:
		_, err = fmt.Fprintln(to.Out, "\nno body")
	case !utf8.Valid(body):
		err = to.Say("\nbody of %d bytes that are not text; --json has them", len(body))
	case len(body) > maxShownBody:
		err = to.Say("\nbody of %d bytes; --json has it", len(body))
	default:
		err = to.Say("\n%s", strings.TrimRight(string(body), "\n"))
	}
	return err
}
