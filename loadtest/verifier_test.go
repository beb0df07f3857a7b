package main

import (
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// answer is a correct reply to event id, modified by change.
func answer(id int, change func(*nats.Msg)) *nats.Msg {
	m := &nats.Msg{Subject: "_INBOX.x." + strconv.Itoa(id), Data: receipt(nil, id), Header: nats.Header{
		events.HeaderEventID: {eventID(id)}, events.HeaderAttempt: {"1"}, events.HeaderStatus: {"200"},
	}}
	if change != nil {
		change(m)
	}
	return m
}

func TestJudge(t *testing.T) {
	set := func(name, value string) func(*nats.Msg) {
		return func(m *nats.Msg) { m.Header[name] = []string{value} }
	}
	for name, tt := range map[string]struct {
		replies []*nats.Msg
		want    string // "": the reply is right
		again   int
	}{
		"right": {replies: []*nats.Msg{answer(1, nil)}},
		"lost":  {want: "lost: 1 of 2 events have no reply, the first are 1"},
		"another's body": {replies: []*nats.Msg{answer(1, func(m *nats.Msg) { m.Data = receipt(nil, 0) })},
			want: `event 1: the reply is "{\"ok\":true,\"id\":0,`},
		"one byte more": {replies: []*nats.Msg{answer(1, func(m *nats.Msg) { m.Data = append(m.Data, ' ') })},
			want: "(51 bytes) and must be"},
		"another's id": {replies: []*nats.Msg{answer(1, set(events.HeaderEventID, "e0"))},
			want: `event 1: the reply says it is to "e0"`},
		"no id": {replies: []*nats.Msg{answer(1, set(events.HeaderEventID, ""))},
			want: `event 1: the reply says it is to ""`},
		"status": {replies: []*nats.Msg{answer(1, set(events.HeaderStatus, "503"))}, want: `event 1: status "503"`},
		"failure": {replies: []*nats.Msg{answer(1, set(events.HeaderError, "cpu: limit"))},
			want: "event 1 failed: cpu: limit"},
		"refused":         {replies: []*nats.Msg{answer(1, set(events.HeaderAttempt, "0"))}, want: "event 1: attempt 0"},
		"unknown":         {replies: []*nats.Msg{answer(1, nil), answer(2, nil)}, want: "a reply came to _INBOX.x.2: no event asked for that"},
		"doubled":         {replies: []*nats.Msg{answer(1, nil), answer(1, nil)}, want: "event 1: two replies of attempt 1, though it was not delivered again"},
		"delivered again": {replies: []*nats.Msg{answer(1, nil), answer(1, set(events.HeaderAttempt, "2"))}, again: 1},
		"again, doubled": {replies: []*nats.Msg{answer(1, set(events.HeaderAttempt, "2")), answer(1, nil)},
			want: "two replies of attempt 1"},
	} {
		t.Run(name, func(t *testing.T) {
			sc, err := findScenario("echo")
			require.NoError(t, err)
			j := newVerifier(sc, 2, false)
			j.take(answer(0, nil))
			for _, m := range tt.replies {
				j.take(m)
			}
			err = j.verdict()
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.again, j.again)
			<-j.all
		})
	}
}

func TestJudgeTellsFewFaultsAndCountsTheRest(t *testing.T) {
	sc, err := findScenario("echo")
	require.NoError(t, err)
	j := newVerifier(sc, 20, true)
	for id := range 20 {
		j.take(&nats.Msg{Subject: "x." + strconv.Itoa(id), Data: []byte("?")})
	}
	require.ErrorContains(t, j.verdict(), "and 15 more")
}
