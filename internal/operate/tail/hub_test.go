package tail

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// feeds has what a Hub published, by subject.
type feeds struct {
	mu   sync.Mutex
	got  map[string][]Entry
	fail error
}

func (f *feeds) publish(subject string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	var e Entry
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	f.got[subject] = append(f.got[subject], e)
	return nil
}

func (f *feeds) setFail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// of returns what was published on a subject: texts of lines, and how much was left out.
func (f *feeds) of(subject string) (texts []string, limited, unfiltered uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.got[subject] {
		if e.Type != TypeLeftOut {
			texts = append(texts, e.Text)
		}
		limited, unfiltered = limited+e.Limited, unfiltered+e.Unfiltered
	}
	return texts, limited, unfiltered
}

func openHub() (*Hub, *feeds) {
	f := &feeds{got: map[string][]Entry{}}
	return New(Config{Node: "n1", Subjects: "pw", Observers: &lifecycle.Observers{}, Publish: f.publish}), f
}

const id, other = "abcdefghijklmnop", "ponmlkjihgfedcba"

func logLine(owner, text string) *events.LogLine {
	return &events.LogLine{Owner: owner, Worker: "w", Version: "1-0123456789ab", Level: "info", Text: text}
}

func TestATailGetsItsOwnersLinesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, f := openHub()
		require.NoError(t, h.Renew("acme", Request{ID: id}))
		require.NoError(t, h.Renew("beta", Request{ID: id, Filter: Filter{Grep: "o"}}))
		h.Log(logLine("acme", "one"))
		h.Log(logLine("beta", "two"))
		h.Log(logLine("beta", "three"))
		h.Log(logLine("else", "four"))
		synctest.Wait()
		texts, _, _ := f.of("pw.feed.acme." + id)
		require.Equal(t, []string{"one"}, texts)
		texts, _, _ = f.of("pw.feed.beta." + id)
		require.Equal(t, []string{"two"}, texts)
		require.Len(t, f.got, 2)
		h.Close()
		h.Log(logLine("acme", "late"))
		require.ErrorIs(t, h.Renew("acme", Request{ID: id}), ErrTooMany)
	})
}

func TestATailEndsWithoutRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, f := openHub()
		defer h.Close()
		require.NoError(t, h.Renew("acme", Request{ID: id}))
		for range 10 {
			time.Sleep(Renewal)
			require.NoError(t, h.Renew("acme", Request{ID: id}))
		}
		h.Log(logLine("acme", "renewed"))
		time.Sleep(lifetime + 2*time.Second)
		require.Nil(t, h.active.Load(), "no tail: one load again")
		h.Log(logLine("acme", "expired"))
		synctest.Wait()
		texts, _, _ := f.of("pw.feed.acme." + id)
		require.Equal(t, []string{"renewed"}, texts)
		// The requester comes back: it is a new tail.
		require.NoError(t, h.Renew("acme", Request{ID: id, Filter: Filter{Level: "warn"}}))
		require.ErrorIs(t, h.Renew("acme", Request{ID: id}), ErrOther)
		require.NoError(t, h.Renew("acme", Request{ID: id, End: true}))
		require.Nil(t, h.active.Load())
		require.NoError(t, h.Renew("acme", Request{ID: id, End: true}), "it has ended already")
	})
}

func TestTailsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := openHub()
		defer h.Close()
		for i := range maxOwnerTails {
			require.NoError(t, h.Renew("acme", Request{ID: fmt.Sprint(id, i)}))
		}
		err := h.Renew("acme", Request{ID: other})
		require.ErrorIs(t, err, ErrTooMany)
		require.Contains(t, err.Error(), "owner acme has 4 in this process")
		for i := maxOwnerTails; i < maxTails; i++ {
			require.NoError(t, h.Renew(fmt.Sprint("o", i), Request{ID: id}))
		}
		require.ErrorContains(t, h.Renew("beta", Request{ID: id}), "this process serves 128, and no more at once")
		require.NoError(t, h.Renew("acme", Request{ID: id + "0"}), "those there are go on")
		require.NoError(t, h.Renew("acme", Request{ID: id + "0", End: true}))
		require.NoError(t, h.Renew("beta", Request{ID: id}))
	})
}

func TestIDsOfTails(t *testing.T) {
	t.Parallel()
	h, _ := openHub()
	for _, bad := range []string{"", "short", "a.b.c.d.e.f.g.h.i", "*", ">", strings.Repeat("x", 65), "abcdefghijklmno ",
		"abcdefghijklmno\r\n", "äbcdefghijklmnop"} {
		var field *FieldError
		require.ErrorAs(t, h.Renew("acme", Request{ID: bad}), &field, bad)
		require.Equal(t, "id", field.Field)
	}
	require.Nil(t, h.active.Load())
}

// Lines beyond the limit are counted, each as what it is, and the counts are sent.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, f := openHub()
		defer h.Close()
		subject := "pw.feed.acme." + id
		require.NoError(t, h.Renew("acme", Request{ID: id}))
		for range 5 { // in parts that the queue has room for
			for range 100 {
				h.Log(logLine("acme", "x"))
			}
			synctest.Wait()
		}
		time.Sleep(tellEvery + time.Millisecond)
		synctest.Wait()
		texts, limited, unfiltered := f.of(subject)
		require.Len(t, texts, Lines)
		require.EqualValues(t, 300, limited)
		require.Zero(t, unfiltered)

		// Lines that do not match are neither sent nor left out.
		require.NoError(t, h.Renew("acme", Request{ID: other, Filter: Filter{Grep: "needle"}}))
		for range 100 {
			for range 100 {
				h.Log(logLine("acme", "hay"))
			}
			synctest.Wait()
		}
		h.Log(logLine("acme", "needle"))
		time.Sleep(tellEvery + time.Millisecond)
		synctest.Wait()
		texts, limited, unfiltered = f.of("pw.feed.acme." + other)
		require.Equal(t, []string{"needle"}, texts)
		require.Zero(t, limited+unfiltered)
	})
}

// While a tail's goroutine is busy, at most so many lines and bytes wait for it. The rest is counted as unread.
func TestTheQueueOfATailIsBounded(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	first := make(chan struct{}, 1)
	h := New(Config{Node: "n1", Subjects: "pw", Publish: func(string, []byte) error {
		select {
		case first <- struct{}{}:
		default:
		}
		<-block
		return nil
	}})
	require.NoError(t, h.Renew("acme", Request{ID: id}))
	h.Log(logLine("acme", "blocks"))
	<-first
	for range 10_000 {
		h.Log(logLine("acme", strings.Repeat("x", 100_000)))
	}
	one := (*h.active.Load())["acme"][0]
	require.LessOrEqual(t, one.queued.Load(), int64(waitingBytes))
	require.Greater(t, one.queued.Load(), int64(waitingBytes-2*maxText))
	require.EqualValues(t, 10_000-len(one.queue), one.unfiltered.Load())
	close(block)
	h.Close()
}

// While NATS is away nothing is kept, and the count is sent later.
func TestLinesAreNotKeptForNATS(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, f := openHub()
		defer h.Close()
		require.NoError(t, h.Renew("acme", Request{ID: id}))
		f.setFail(errors.New("away"))
		h.Log(logLine("acme", "lost"))
		time.Sleep(3 * tellEvery)
		f.setFail(nil)
		h.Log(logLine("acme", "kept"))
		time.Sleep(2 * tellEvery)
		synctest.Wait()
		texts, limited, _ := f.of("pw.feed.acme." + id)
		require.Equal(t, []string{"kept"}, texts)
		require.EqualValues(t, 1, limited)
	})
}

func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	e := ofLine(logLine("acme", strings.Repeat("ä", maxText)))
	require.True(t, e.Cut)
	require.Equal(t, strings.Repeat("ä", maxText/2), e.Text)
	e = ofLine(logLine("acme", "x"+strings.Repeat("ä", maxText)))
	require.Len(t, e.Text, maxText-1, "no half letter")
}

func report(kind events.Kind, end *lifecycle.End, reply *events.Reply) *lifecycle.Report {
	return &lifecycle.Report{
		Attempt: &lifecycle.Attempt{Event: &lifecycle.Delivery{Event: events.Event{Owner: "acme", Worker: "w",
			Kind: kind, ID: "e1"}},
			Worker: &workers.Worker{Version: "3-0123456789ab"}, Number: 2, Start: time.Now()},
		Reply: reply, End: end,
	}
}

// first is the entry of an attempt of one event.
func first(r *lifecycle.Report) *Entry { return ofReport(r)[0] }

// Each event of a batch has an entry.
func TestEndedBatch(t *testing.T) {
	t.Parallel()
	r := report(events.Task, &lifecycle.End{
		Started: true, Failure: events.Fail(events.ReasonException, "no"),
		Items: []lifecycle.Item{{Decision: lifecycle.Acked}, {}, {Decision: lifecycle.Again}},
	}, nil)
	for _, id := range []string{"e1", "e2", "e3"} {
		r.Attempt.Batch = append(r.Attempt.Batch, &lifecycle.Delivery{Event: events.Event{Owner: "acme",
			Worker: "w", Kind: events.Task, ID: id}, Runs: events.Runs{Attempt: 4}})
	}
	var list []any
	for _, e := range ofReport(r) {
		list = append(list, e.EventID, e.Outcome, e.Attempt, e.Batch)
	}
	require.Equal(t, []any{"e1", OutcomeOK, 4, 3, "e2", OutcomeFailed, 4, 3, "e3", OutcomeRetry, 4, 3}, list)
}

func TestEndedAttempts(t *testing.T) {
	t.Parallel()
	require.Nil(t, ofReport(report(events.Fetch, nil, &events.Reply{Status: 200})), "it has not ended")
	require.Nil(t, ofReport(report(events.Task, &lifecycle.End{Interrupted: true}, nil)), "it did not begin")
	e := first(report(events.Fetch, &lifecycle.End{Started: true, CPU: 1500 * time.Microsecond},
		&events.Reply{Status: 201}))
	require.Equal(t, []any{"fetch", "acme", "w", "3-0123456789ab", "e1", 2, OutcomeOK, 201, 1.5},
		[]any{e.Kind, e.Owner, e.Worker, e.Version, e.EventID, e.Attempt, e.Outcome, e.Status, e.CPUMs})
	r := report(events.Fetch, &lifecycle.End{Started: true}, nil)
	r.Attempt.Status = 202
	require.Equal(t, 202, first(r).Status, "the reply was reported before")
	f := events.NewFailure(events.ReasonTimeout, "too long", "")
	e = first(report(events.Fetch, &lifecycle.End{Started: true, Failure: f}, nil))
	require.Equal(t, []any{OutcomeFailed, "timeout", "too long", f.Reason.Status()},
		[]any{e.Outcome, e.Reason, e.Message, e.Status})
	broken := first(report(events.Fetch, &lifecycle.End{Started: true, Interrupted: true, Broken: f},
		&events.Reply{Status: 200}))
	require.Equal(t, []any{OutcomeBroken, "timeout", "too long", 200}, []any{broken.Outcome, broken.Reason, broken.Message,
		broken.Status})
	require.Equal(t, OutcomeRetry, first(report(events.Task, &lifecycle.End{Started: true, Retry: true}, nil)).Outcome)
	require.Equal(t, OutcomeInterrupted, first(report(events.Task, &lifecycle.End{Started: true, Interrupted: true}, nil)).
		Outcome)
}

// ended has the observers of h see reports, as dispatch does.
func (h *Hub) ended(reports []lifecycle.Report) {
	for _, o := range h.cfg.Observers.All() {
		for i := range reports {
			o.Ended(&reports[i])
		}
	}
}

// Without tails, lines and reports cost no allocation.
func TestNoTailsNoAllocations(t *testing.T) {
	h, _ := openHub()
	l, reports := logLine("acme", "x"), []lifecycle.Report{*report(events.Task, &lifecycle.End{Started: true}, nil)}
	require.Zero(t, testing.AllocsPerRun(1000, func() { h.Log(l); h.ended(reports) }))
}

// BenchmarkNoTail is what a log line and an ended event cost while nobody tails, and while somebody tails another
// owner.
func BenchmarkNoTail(b *testing.B) {
	l, reports := logLine("acme", "x"), []lifecycle.Report{*report(events.Task, &lifecycle.End{Started: true}, nil)}
	run := func(name string, h *Hub) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.Log(l)
				h.ended(reports)
			}
		})
	}
	h, _ := openHub()
	run("nobody", h)
	require.NoError(b, h.Renew("beta", Request{ID: id}))
	defer h.Close()
	run("another owner", h)
}
