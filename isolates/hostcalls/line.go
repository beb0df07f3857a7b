package hostcalls

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// frameBytes is what something that is to be written counts as, in addition to its bytes.
const frameBytes = 64

// frame is something to be written. What the kinds are, put knows.
type frame struct {
	kind int
	data []byte
}

// line is what a WebSocket and a TCP socket have in common: what they hold for their run, and what is to be written.
// One goroutine writes, while there is something to write.
type line struct {
	r *Calls
	c *call
	// put writes a frame. told says that JavaScript is notified of it. After an error nothing more is written.
	put    func(frame) (told bool, err error)
	sentOp int // the message to JavaScript by which it is notified

	mu      sync.Mutex
	queue   []frame // to be written
	open    bool    // the connection can be written to
	writing bool    // a goroutine writes, or could not
	held    int     // bytes that are counted as the run's
	over    bool    // no more bytes are counted
	why     error   // why it was given up
}

// hold counts n bytes as the run's, unless that exceeds a limit.
func (l *line) hold(n int) error {
	if err := l.r.run.Hold(n); err != nil {
		return err
	}
	l.mu.Lock()
	late := l.over
	if !late {
		l.held += n
	}
	l.mu.Unlock()
	if late {
		l.r.run.Drop(n)
	}
	return nil
}

// drop uncounts n bytes that hold counted.
func (l *line) drop(n int) {
	l.mu.Lock()
	if l.over {
		n = 0
	}
	l.held -= n
	l.mu.Unlock()
	l.r.run.Drop(n)
}

// dropAll uncounts all bytes. After it nothing is counted.
func (l *line) dropAll() {
	l.mu.Lock()
	n := l.held
	l.held, l.over, l.queue, l.open = 0, true, nil, false
	l.mu.Unlock()
	l.r.run.Drop(n)
}

// giveUp ends the connection at once: what waits is not sent. Any goroutine may call it.
func (l *line) giveUp(why error) {
	l.mu.Lock()
	if l.why == nil {
		l.why = why
	}
	l.mu.Unlock()
	l.c.cancel()
}

// reason is err, or the earlier reason for which the line was given up.
func (l *line) reason(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil {
		return l.why
	}
	return err
}

// enqueue has a frame written after the frames before it.
func (l *line) enqueue(f frame) {
	if err := l.hold(len(f.data) + frameBytes); err != nil {
		l.giveUp(err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over { // nothing is counted any more
		return
	}
	l.queue = append(l.queue, f)
	l.startWriting()
}

// begin says that the connection can be written to.
func (l *line) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
	l.startWriting()
}

// startWriting has the queue written, unless a goroutine does. The caller holds the lock.
func (l *line) startWriting() {
	if l.open && !l.writing && len(l.queue) > 0 {
		l.writing = true
		go l.write() // it ends with the connection
	}
}

// next returns the next frame to be written. Without one, the goroutine that writes ends.
func (l *line) next() (f frame, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.writing = false
		return frame{}, false
	}
	f = l.queue[0]
	l.queue[0] = frame{}
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	return f, true
}

// sentAfter is how many bytes are written before JavaScript is notified while more waits to be written.
const sentAfter = 256 << 10

// write writes the enqueued frames until there is none. It runs in its own goroutine: an idle connection has none.
func (l *line) write() {
	bytes, count := 0, 0
	for {
		f, ok := l.next()
		if count > 0 && (!ok || bytes >= sentAfter) {
			l.sent(bytes, count)
			bytes, count = 0, 0
		}
		if !ok {
			return
		}
		told, err := l.put(f)
		if err != nil {
			return // the reader gets an error, too
		}
		l.drop(len(f.data) + frameBytes)
		if told {
			bytes, count = bytes+len(f.data), count+1
		}
	}
}

// sent notifies JavaScript that frames were written.
func (l *line) sent(bytes, count int) {
	l.r.answer(l.c, false, func(call *v8x.Call) []byte {
		call.Reset(l.sentOp).Number(l.c.id).Number(float64(bytes)).Number(float64(count))
		return nil
	})
}
