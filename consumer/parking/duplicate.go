package parking

import (
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
)

// noRollup is an invalid value of jsapi.HeaderRollup.
const noRollup = "none"

// Duplicate calls done with whether e was parked before. The process of e's last delivery died. If e was parked by
// then, it is among the parked events, or has ended there.
//
// The request parks the event with a header that JetStream refuses. JetStream checks first whether it has the message
// id. The leader must refuse the header by itself. A wrong Nats-Expected-Last-Msg-Id, for example, will not do:
// nats-server 2.15.2 passes it to all replicas of the stream, and they take it for a failing disk and stop forever.
func (p *Parker) Duplicate(e *events.Event, done func(parked bool, err error)) {
	m := &nats.Msg{Subject: p.prefix.Parked(e), Header: nats.Header{
		events.HeaderMsgID: {events.ParkedID(e)}, jsapi.HeaderRollup: {noRollup},
	}}
	p.api.Store(m, func(ack jsapi.Ack, err error) {
		var refused *jsapi.Error
		switch {
		case err == nil && ack.Duplicate:
			done(true, nil)
		case err != nil && (!errors.As(err, &refused) || refused.ErrCode == jsapi.CodeDuplicateInProgress):
			done(false, err)
		default:
			if err != nil && refused.ErrCode != jsapi.CodeRollupFailed {
				p.log.Warn().Err(err).Str("event", e.ID).Msg("JetStream does not say whether a redelivered event is parked; running it")
			}
			done(false, nil)
		}
	})
}
