package wire

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// MostBody is how many bytes the body of a reply may have. Only the reply to a call of a service may have more than a
// message of NATS; the handler of another worker waits for it, and learns that it is too large.
const MostBody = 64 << 20

// Bounds of what a report says.
const (
	maxTime    = 400 * 24 * time.Hour // CPU time of an attempt, and delay until the next one
	maxHeaders = 4 << 10              // names and values of a reply
)

// What a report has.
const (
	hasReply = 1 << iota
	hasEnd
	hasStream  // the reply's body comes in chunks
	hasSocket  // the reply has a WebSocket
	hasFailure // of the reply or of the end
	hasBroken
	hasItems
	isInterrupted
	isStarted
	isNoRetry
	isRetry
	isWaited
	isWarm
	isLost
)

// PutReport appends a report about an attempt. socket is the number of the reply's WebSocket, if it has one.
func PutReport(w *Writer, id uint64, rep *lifecycle.Report, socket uint64) {
	w.Uint(id)
	has := uint64(0)
	if rep.Reply != nil {
		has |= hasReply
	}
	if rep.End != nil {
		has |= hasEnd
	}
	w.Uint(has)
	if rep.Reply != nil {
		putReply(w, rep.Reply, socket)
	}
	if rep.End != nil {
		putEnd(w, rep.End)
	}
}

func flag(has *uint64, bit uint64, is bool) {
	if is {
		*has |= bit
	}
}

func putReply(w *Writer, p *events.Reply, socket uint64) {
	has := uint64(0)
	flag(&has, hasStream, p.Stream != nil)
	flag(&has, hasSocket, p.Socket != nil)
	flag(&has, hasFailure, p.Failure != nil)
	w.Uint(has)
	w.Int(int64(p.Status))
	w.Text(oneLine(p.StatusText))
	w.Uint(uint64(len(p.Headers)))
	for i, s := range p.Headers {
		if i%2 == 1 {
			s = oneLine(s)
		}
		w.Text(s)
	}
	w.Bytes(p.Body)
	w.Int(int64(p.Dropped))
	if p.Socket != nil {
		w.Uint(socket)
	}
	if p.Failure != nil {
		putFailure(w, p.Failure)
	}
}

// ends are the characters that end a text of a message. No handler can make a header with one, but a server that it
// asks may answer with one.
const ends = "\x00\r\n"

// oneLine replaces what ends a text.
func oneLine(s string) string {
	if !strings.ContainsAny(s, ends) {
		return s
	}
	return strings.NewReplacer("\x00", " ", "\r", " ", "\n", " ").Replace(s)
}

// SentReport is a report as it came from a cell.
type SentReport struct {
	ID    uint64 // of the attempt
	Reply *events.Reply
	End   *lifecycle.End

	Stream bool   // the reply's body comes in chunks
	Socket uint64 // the number of the reply's WebSocket; 0 = it has none
}

// ReadReport takes a report.
func ReadReport(r *Reader) (s SentReport) {
	s.ID = r.Uint()
	has := r.Uint()
	if has == 0 || has&^(hasReply|hasEnd) != 0 {
		r.Fail(errors.New("a report has a reply or an end, and nothing else"))
	}
	if has&hasReply != 0 {
		s.Reply = &events.Reply{}
		readReply(r, &s)
	}
	if has&hasEnd != 0 && r.err == nil {
		s.End = readEnd(r)
	}
	return s
}

// readFlags takes flags, of those that there may be.
func readFlags(r *Reader, may uint64) uint64 {
	has := r.Uint()
	if has&^may != 0 {
		r.Fail(fmt.Errorf("a report has the flags %#x, of which there may be %#x", has, may))
		return 0
	}
	return has
}

func readReply(r *Reader, s *SentReport) {
	p, has := s.Reply, readFlags(r, hasStream|hasSocket|hasFailure)
	p.Status, p.StatusText = int(r.Number(0, 599)), r.Text()
	p.Headers = r.Texts()
	p.Body = append([]byte(nil), r.Bytes()...)
	p.Dropped = int(r.Number(0, math.MaxInt64))
	s.Stream = has&hasStream != 0
	if has&hasSocket != 0 {
		if s.Socket = r.Uint(); s.Socket == 0 {
			r.Fail(errors.New("a WebSocket has no number"))
		}
	}
	if has&hasFailure != 0 {
		p.Failure = readFailure(r)
	}
	if r.err == nil {
		if err := checkHead(p, s.Socket != 0); err != nil {
			r.Fail(err)
		}
	}
}

// checkHead returns an error if no handler can have made a reply like this: its texts become headers of HTTP and NATS.
func checkHead(p *events.Reply, socket bool) error {
	switch {
	case socket != (p.Status == http.StatusSwitchingProtocols):
		return fmt.Errorf("the status of a reply is %d, and only a WebSocket has 101", p.Status)
	case p.Status != 0 && p.Status < http.StatusOK && !socket:
		return fmt.Errorf("the status of a reply is %d: it is 200 to 599", p.Status)
	case len(p.Headers)%2 != 0:
		return errPairs
	case len(p.Headers) > maxHeaders:
		return fmt.Errorf("a reply has %d names and values of headers: at most %d", len(p.Headers), maxHeaders)
	case strings.ContainsAny(p.StatusText, ends):
		return errors.New("the status text of a reply has characters that none has")
	}
	for i := 0; i < len(p.Headers); i += 2 {
		if !httpguts.ValidHeaderFieldName(p.Headers[i]) || strings.ContainsAny(p.Headers[i+1], ends) {
			return fmt.Errorf("a reply has the header %.40q, which none can have", p.Headers[i])
		}
	}
	return nil
}

func putFailure(w *Writer, f *events.Failure) {
	w.Text(string(f.Reason))
	w.Text(f.Message)
	w.Text(f.Stack)
}

func readFailure(r *Reader) *events.Failure {
	reason, err := events.ParseReason(r.Text())
	if err != nil {
		r.Fail(err)
	}
	return events.NewFailure(reason, r.Text(), r.Text())
}

func putEnd(w *Writer, e *lifecycle.End) {
	has := uint64(0)
	flag(&has, hasFailure, e.Failure != nil)
	flag(&has, hasBroken, e.Broken != nil)
	flag(&has, hasItems, len(e.Items) > 0)
	flag(&has, isInterrupted, e.Interrupted)
	flag(&has, isStarted, e.Started)
	flag(&has, isNoRetry, e.NoRetry)
	flag(&has, isRetry, e.Retry)
	flag(&has, isWaited, e.Waited)
	flag(&has, isWarm, e.Warm)
	flag(&has, isLost, e.Lost)
	w.Uint(has)
	w.Duration(min(max(0, e.CPU), maxTime))
	w.Duration(min(e.RetryDelay, maxTime))
	if e.Failure != nil {
		putFailure(w, e.Failure)
	}
	if e.Broken != nil {
		putFailure(w, e.Broken)
	}
	if len(e.Items) > 0 {
		w.Uint(uint64(len(e.Items)))
		for i := range e.Items {
			putItem(w, &e.Items[i])
		}
	}
}

func readEnd(r *Reader) *lifecycle.End {
	has := readFlags(r, hasFailure|hasBroken|hasItems|isInterrupted|isStarted|isNoRetry|isRetry|isWaited|isWarm|isLost)
	e := &lifecycle.End{
		Interrupted: has&isInterrupted != 0, Started: has&isStarted != 0,
		NoRetry: has&isNoRetry != 0, Retry: has&isRetry != 0,
		Waited: has&isWaited != 0, Warm: has&isWarm != 0, Lost: has&isLost != 0,
	}
	e.CPU = r.Duration(maxTime)
	e.RetryDelay = readDelay(r)
	if has&hasFailure != 0 {
		e.Failure = readFailure(r)
	}
	if has&hasBroken != 0 {
		e.Broken = readFailure(r)
	}
	if has&hasItems == 0 {
		return e
	}
	n := r.Uint()
	if n > uint64(workers.MaxBatch.MaxSize) {
		r.Fail(fmt.Errorf("an end decides about %d events: at most %d", n, workers.MaxBatch.MaxSize))
		return e
	}
	e.Items = make([]lifecycle.Item, n)
	for i := range e.Items {
		e.Items[i] = readItem(r)
	}
	return e
}

// readDelay takes a delay; a negative one is that of the retry policy.
func readDelay(r *Reader) time.Duration {
	return max(-1, time.Duration(r.Number(math.MinInt64, int64(maxTime))))
}

func putItem(w *Writer, it *lifecycle.Item) {
	w.Uint(uint64(it.Decision))
	w.Duration(min(it.Delay, maxTime))
	w.Bool(it.Failure != nil)
	if it.Failure != nil {
		putFailure(w, it.Failure)
	}
}

func readItem(r *Reader) (it lifecycle.Item) {
	it.Decision = lifecycle.Decision(r.Uint())
	it.Delay = readDelay(r)
	if r.Bool() {
		it.Failure = readFailure(r)
	}
	if it.Decision > lifecycle.Failed || (it.Decision == lifecycle.Failed) != (it.Failure != nil) {
		r.Fail(fmt.Errorf("decision %d about an event of a batch: there is none like this", it.Decision))
	}
	return it
}

// PutChunk appends a piece of an attempt's body.
func PutChunk(w *Writer, id uint64, c events.Chunk) {
	w.Uint(id)
	w.Bytes(c.Data)
	w.Bool(c.End)
	w.Bool(c.Waits)
	w.Bool(c.Failure != nil)
	if c.Failure != nil {
		putFailure(w, c.Failure)
	}
}

// ReadChunk takes a piece of the body of an attempt.
func ReadChunk(r *Reader) (id uint64, c events.Chunk) {
	id = r.Uint()
	c.Data = append([]byte(nil), r.Bytes()...)
	c.End, c.Waits = r.Bool(), r.Bool()
	if r.Bool() {
		c.Failure = readFailure(r)
	}
	return id, c
}
