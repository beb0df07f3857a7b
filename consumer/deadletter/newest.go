package deadletter

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Window is a part of the stream of dead letters that Newest has read.
type Window struct {
	Letters []Found // those that the filter chooses, the newest first; often none
	From    uint64  // all letters from this number on have been looked at
	Read    int     // messages that were read for it
}

// Found is a letter of a Window. For a message that is no letter, Err is ErrUndecodable, and the letter has only Seq.
type Found struct {
	Letter *events.DeadLetter
	Err    error
}

// pace says how Newest reads. NATS has no way to read backwards: it reads windows of numbers, the last one first, each
// forwards.
type pace struct {
	window  uint64 // numbers of the first window, at most
	letters int    // messages that a window may have
	bytes   int    // bytes that the chosen letters of a window may have
	// scan is how many numbers a window has at least that a consumer reads: it takes some requests more, and less for
	// each letter.
	scan uint64
}

// newestPace keeps few letters in memory. It is quick for a page of the newest letters. A consumer reads large windows.
// Making one takes long in a stream of many subjects, so windows grow.
var newestPace = pace{window: 256, letters: 8192, bytes: 8 << 20, scan: 128}

// Newest iterates over the dead letters that f chooses, the newest first, in windows of the stream. before, if it is
// not 0, is the number that all of them are below. The windows are bounded, and their letters are the only ones in
// memory. The caller may stop after any window, and continue later with its From as before. Letters that arrive
// meanwhile are not included. An error ends the iteration.
func (d *Store) Newest(ctx context.Context, f Filter, before uint64) iter.Seq2[Window, error] {
	return d.newest(ctx, f, before, newestPace)
}

func (d *Store) newest(ctx context.Context, f Filter, before uint64, p pace) iter.Seq2[Window, error] {
	return func(yield func(Window, error) bool) {
		b, err := d.backward(ctx, f, before, p)
		if err != nil {
			yield(Window{}, fmt.Errorf("dead letters: %w", err))
			return
		}
		for left := f.Limit; b.first < b.end; {
			w, err := b.next(ctx)
			if err != nil {
				yield(Window{}, fmt.Errorf("dead letters: %w", err))
				return
			}
			last := f.Limit > 0 && len(w.Letters) >= left
			if last {
				w.Letters = w.Letters[:left]
				w.From = w.Letters[left-1].Letter.Seq
			}
			left -= len(w.Letters)
			if !yield(w, nil) || last {
				return
			}
		}
	}
}

// backward reads windows, the last one first.
type backward struct {
	store      *Store
	choice     choice
	pace       pace
	first, end uint64 // numbers that are left: from first on, below end
	size       uint64 // numbers of the next window
}

// backward finds out which numbers there are.
func (d *Store) backward(ctx context.Context, f Filter, before uint64, p pace) (*backward, error) {
	stream, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	b := &backward{store: d, choice: f.choice(), pace: p, first: max(info.State.FirstSeq, f.After+1),
		end: info.State.LastSeq + 1, size: p.window}
	if before > 0 {
		b.end = min(b.end, before)
	}
	if f.Limit > 0 { // without gaps these are all
		b.size = min(b.size, uint64(f.Limit))
	}
	return b, nil
}

// next reads the next window. If it has too much for the memory, a smaller one is read instead, with about as many
// numbers as had room. A window that has little is followed by one of twice the size. So windows fit how dense the
// letters are, and what is read in vain is a share of what is read.
func (b *backward) next(ctx context.Context) (w Window, err error) {
	for {
		w.From, w.Letters = b.first, nil
		if b.end-b.first > b.size {
			w.From = b.end - b.size
		}
		span := b.end - w.From
		r, err := b.read(ctx, &w)
		w.Read += r.messages
		if err != nil {
			return w, err
		}
		if r.tooMuch {
			b.size = max(1, min(span/2, (r.last-w.From)/4*3))
			continue
		}
		slices.Reverse(w.Letters)
		b.end, b.size = w.From, span
		if r.messages < b.pace.letters/2 && r.bytes < b.pace.bytes/4 && span < 1<<62 {
			b.size = 2 * span
		}
		return w, nil
	}
}

// reading is what was read of a window.
type reading struct {
	messages int
	bytes    int    // of letters that are chosen
	last     uint64 // number of the last message
	tooMuch  bool   // for a window; one message never is
}

// read reads what there is from w.From on.
func (b *backward) read(ctx context.Context, w *Window) (r reading, err error) {
	alone, read := b.end-w.From == 1, stored.All
	if b.end-w.From >= b.pace.scan {
		read = stored.Scan
	}
	for m, err := range read(ctx, b.store.js.Conn(), events.StreamDead, b.choice.subject(b.store.subjects), w.From) {
		switch {
		case err != nil:
			return r, err
		case m.Sequence >= b.end:
			return r, nil
		}
		letter, err := decodeDead(m)
		if err != nil || b.choice.admits(letter) {
			w.Letters = append(w.Letters, Found{letter, err})
			r.bytes += size(m)
		}
		r.messages, r.last = r.messages+1, m.Sequence
		if r.tooMuch = !alone && (r.messages > b.pace.letters || r.bytes > b.pace.bytes); r.tooMuch || m.Sequence == b.end-1 {
			return r, nil // the next message is beyond
		}
	}
	return r, nil
}

// size is about how much memory a letter takes.
func size(m *stored.Message) int {
	n := len(m.Data)
	for name, values := range m.Header {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}
