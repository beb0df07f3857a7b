package consumer

import (
	"encoding/json"
	"errors"
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

// putOff moves h to the stream of schedules, where it waits until a time and then comes as due, with all that is known of
// it. It is stored, and then acked; whoever gets it again after a crash in between stores it again, and JetStream finds that it has it: by
// the message id for as long as movedWindow, and as long as it has not ended by what else is there under the event's key.
// h is in phase settling. It runs on the settle goroutine.
func (c *Consumer) putOff(h *held, until time.Time) {
	h.tries = newRetrier(0)
	c.publishPutOff(h, until)
}

func (c *Consumer) publishPutOff(h *held, until time.Time) {
	e := h.event
	header := nats.Header(events.EncodeParked(e))
	header.Set(headerSchedule, "@at "+until.UTC().Format(time.RFC3339Nano))
	header.Set(headerScheduleTarget, c.cfg.Prefix.Due(e))
	header.Set(events.HeaderMsgID, events.ParkedID(e))
	header.Set(headerExpectLastSubjectSeq, "0")
	if h.from.stream == StreamSchedules {
		header.Set(headerExpectLastSubjectSeq, strconv.FormatUint(e.Origin.Seq, 10))
	}
	header.Set(headerExpectLastSubjectSubject, c.cfg.Prefix.Anywhere(e))
	if text := carry(h.record); text != "" {
		header.Set(events.ParkedRecord, text)
	}
	m := &nats.Msg{Subject: c.cfg.Prefix.Waiting(e), Header: header, Data: e.Body}
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		c.do(func() {
			switch {
			case err == nil, isWrongLastSequence(err):
				h.tries = nil
				c.step(StepPutOff)
				c.metrics.putOff.Inc()
				c.nowWaits(e.Owner)
				c.ack(h)
			case isRefused(err):
				c.cannotPutOff(h, until, err)
			default:
				c.log.Warn().Err(err).Str("event", e.ID).Str("worker", e.Target()).Msg("event could not be put off; trying again")
				c.recreate()
				c.after(h.tries, func() { c.publishPutOff(h, until) })
			}
		})
	})
}

// isRefused reports whether JetStream will not take a message, however often it is asked.
func isRefused(err error) bool {
	var api *apiError
	return errors.As(err, &api) && api.Code == 400
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
	c.wait(h, until)
}

// moved is in the record of an event that is being put off: its next run is not this process's to begin, nor that of whoever gets it
// after a crash, who puts it off again.
type moved struct {
	Until   time.Time `json:"until"`
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
