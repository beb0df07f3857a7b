package consumer

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// Headers by which a message of the stream of schedules waits: when, and where it goes then.
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// putOff moves h to the stream of schedules, where it waits until a time, by the clock of NATS, and then comes as due, with all that is known of
// it. It is stored, and then acked; whoever gets it again after a crash in between stores it again, and JetStream finds that it has it: by
// the message id for as long as movedWindow, and as long as it has not ended by what else is there under the event's key.
// h is in phase settling. It runs on the settle goroutine.
func (c *Consumer) putOff(h *held, until time.Time) {
	if h.lapsed {
		return
	}
	h.tries = newRetrier(0)
	e, after := h.event, uint64(0)
	if h.from.stream == StreamSchedules {
		after = e.Origin.Seq
	}
	if e.Key == "" {
		e.Key = e.NewKey()
		if e.Origin.Deliveries > 1 {
			c.lookEarlier(h, until)
			return
		}
	}
	c.publishPutOff(h, until, after)
}

// waitingMsg is h's event as it waits until a time. It is stored only if after is the last sequence under the event's key, 0 for none.
func (c *Consumer) waitingMsg(h *held, until time.Time, after uint64) *nats.Msg {
	e := h.event
	record := carry(h.record)
	header := c.asideHeader(e, len(record))
	header.Set(headerSchedule, "@at "+until.UTC().Format(time.RFC3339Nano))
	header.Set(headerScheduleTarget, c.cfg.Prefix.Due(e))
	header.Set(events.HeaderMsgID, events.ParkedID(e))
	header.Set(headerExpectLastSubjectSeq, strconv.FormatUint(after, 10))
	header.Set(headerExpectLastSubjectSubject, c.cfg.Prefix.Anywhere(e))
	if record != "" {
		header.Set(events.ParkedRecord, record)
	}
	return &nats.Msg{Subject: c.cfg.Prefix.Waiting(e), Header: header, Data: e.Body}
}

func (c *Consumer) publishPutOff(h *held, until time.Time, after uint64) {
	m := c.waitingMsg(h, until, after)
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		c.do(func() {
			switch {
			case err == nil:
				c.isPutOff(h, m.Size())
			case isWrongLastSequence(err):
				c.checkPutOff(h, until)
			case isRefused(err):
				c.cannotPutOff(h, until, err)
			default:
				c.noRoom(StreamSchedules, err)
				c.log.Warn().Err(err).Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("event could not be put off; trying again")
				c.recreate()
				c.after(h.tries, func() { c.publishPutOff(h, until, after) })
			}
		})
	})
}

// isPutOff ends h here: it waits in the stream of schedules, as so many bytes.
func (c *Consumer) isPutOff(h *held, size int) {
	h.tries = nil
	c.step(StepPutOff)
	c.metrics.putOff.Inc()
	c.nowWaits(h.event.Owner, size)
	c.ack(h)
}

// lookEarlier puts h off, which was delivered before, unless an earlier binary has done so, under a key of its own, and died before the ack.
func (c *Consumer) lookEarlier(h *held, until time.Time) {
	c.lookUp(StreamSchedules, c.cfg.Prefix.AnywhereEarlier(h.event), func(m *storedMsg, err error) {
		c.do(func() {
			switch {
			case err != nil:
				c.lookAgainLater(h, err, func() { c.lookEarlier(h, until) })
			case c.isStored(m, h.event):
				c.isPutOff(h, len(m.Data))
			default:
				c.publishPutOff(h, until, 0)
			}
		})
	})
}

// checkPutOff looks at what is under h's key, which is not what it should be: most often h's event, put off before a crash.
func (c *Consumer) checkPutOff(h *held, until time.Time) {
	e, own := h.event, h.from.stream == StreamSchedules
	c.lookUp(StreamSchedules, c.cfg.Prefix.Anywhere(e), func(m *storedMsg, err error) {
		c.do(func() {
			switch {
			case err != nil:
				c.lookAgainLater(h, err, func() { c.checkPutOff(h, until) })
			case m == nil && own:
				c.log.Info().Str("event", e.ID).Str("worker", e.Target()).Msg("event that was to be put off has ended elsewhere, or its stream was made again")
				h.tries = nil
				c.table.remove(h)
			case m == nil: // what was there has ended meanwhile
				c.publishPutOff(h, until, 0)
			case c.isStored(m, e) && !(own && m.Sequence == e.Origin.Seq):
				c.isPutOff(h, len(m.Data))
			case e.Overlaps() == events.OverlapReplace && m.tick() > e.ScheduledTime:
				c.endSuperseded(h)
			case e.Overlaps() != events.OverlapAllow: // an earlier tick, which this one replaces
				c.publishPutOff(h, until, m.Sequence)
			case own && m.Sequence == e.Origin.Seq: // what came after it has ended meanwhile
				c.publishPutOff(h, until, m.Sequence)
			default: // of a stream that was deleted, under a key of earlier binaries
				e.Key = e.NewKey()
				c.publishPutOff(h, until, 0)
			}
		})
	})
}

func (c *Consumer) lookAgainLater(h *held, err error, again func()) {
	c.log.Warn().Err(err).Str("event", h.event.ID).Msg("it could not be looked up whether an event waits already; trying again")
	c.recreate()
	c.after(h.tries, again)
}

// isStored reports whether m, of the stream of schedules, is e. What it goes by is the fleet's: no publisher may store there, and headers of
// theirs that look like it have another name.
func (c *Consumer) isStored(m *storedMsg, e *events.Event) bool {
	if m == nil {
		return false
	}
	got, _ := c.decoder.DecodeParked(events.Origin{Stream: StreamSchedules, Seq: m.Sequence, Subject: m.Subject}, events.Header(m.Header), m.Data, m.Time)
	return got.ID == e.ID && got.Target() == e.Target() && got.Kind == e.Kind && got.Stored.Equal(e.Stored) && got.FirstStored() == e.FirstStored()
}

// cannotPutOff is for events whose headers do not fit, with those that are added. A retry waits here then.
func (c *Consumer) cannotPutOff(h *held, until time.Time, err error) {
	c.log.Warn().Err(err).Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("event cannot be put off")
	h.tries = nil
	if h.record == nil || h.record.Moved == nil {
		c.refuse(h, events.Fail(events.ReasonMalformed, "the event cannot be put off: %v", err))
		return
	}
	h.record.Moved = nil
	c.store(h, nil)
	c.wait(h, c.clock.own(until))
}

// moved is in the record of an event that is being put off: its next run is not this process's to begin, nor that of whoever gets it
// after a crash, who puts it off again.
type moved struct {
	Until   time.Time `json:"until"`   // by the clock of NATS
	Attempt int       `json:"attempt"` // of the next run
	Crashes int       `json:"crashes"`
}

// moveAgain puts off an event whose record says so: it came again because its ack did not.
func (c *Consumer) moveAgain(h *held, r *record) {
	h.record, h.event.Attempt, h.event.Crashes = r, r.Moved.Attempt, r.Moved.Crashes
	h.event.CrashedAlone = h.event.CrashedAlone || r.CrashedAlone
	if c.table.move(h, settling, loading) {
		c.putOff(h, r.Moved.Until)
	}
}

// carriedMessage bounds the message of each failure that an event takes along.
const carriedMessage = 256

// carry is what an event takes along of its record: when it failed first, and its last failures. "" for nothing.
func carry(r *record) string {
	if r == nil || r.FirstAt.IsZero() && !r.CrashedAlone {
		return ""
	}
	small := record{FirstAt: r.FirstAt, CrashedAlone: r.CrashedAlone, History: append([]failed(nil), r.History...)}
	for i, f := range small.History {
		if len(f.Message) > carriedMessage {
			small.History[i].Message = strings.ToValidUTF8(f.Message[:carriedMessage], "")
		}
	}
	text, err := json.Marshal(small)
	if err != nil {
		return ""
	}
	return string(text)
}

// carriedRecord is the inverse of carry. What cannot be read is nothing.
func carriedRecord(text string) *record {
	r := &record{}
	if text == "" || json.Unmarshal([]byte(text), r) != nil {
		return nil
	}
	return &record{FirstAt: r.FirstAt, CrashedAlone: r.CrashedAlone, History: r.History}
}
