package deadletter

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// maxClaims is how many claims of replays are kept for an owner. After claimsSweep new claims of an owner, a process
	// removes those beyond. A publisher may set the header of a replay, and each such event makes a claim, which stays for
	// as long as the bucket keeps it.
	maxClaims, claimsSweep = 10_000, 1000
	// claimOwners is how many owners are counted at most.
	claimOwners = 10_000
)

// Claims makes sure that only one of all publishes of a replay runs. The first that claims the replay stores its nonce.
// Copies of it, redelivered or parked meanwhile, have the same nonce. It also stores how a replay ended. Its methods
// are for the loop of its Client.
type Claims struct {
	api   *jsapi.Client
	usage *storage.Usage
	log   zerolog.Logger

	made map[string]int // claims made, by owner, since those beyond maxClaims were removed
}

// NewClaims makes a Claims.
func NewClaims(api *jsapi.Client, usage *storage.Usage, log zerolog.Logger) *Claims {
	return &Claims{api: api, usage: usage, log: log}
}

// Claim is the result of claiming a replay.
type Claim uint8

// The claims.
const (
	Claimed      Claim = iota + 1 // it runs: no other publish of it came before
	ClaimedAgain                  // it runs: this publish has claimed it before
	ClaimedOther                  // it does not run: another publish of it has claimed it
	ClaimEnded                    // it does not run: it has ended, and its ack was lost
)

// Replay identifies a replay.
type Replay struct{ Owner, ID, Nonce string }

// ReplayOf returns which replay an event is. ok is false if it is no replay.
func ReplayOf(e *events.Event) (r Replay, ok bool) {
	if !IsReplay(e) {
		return r, false
	}
	r.Owner = e.Owner
	r.ID, r.Nonce, ok = events.ParseReplayMark(e.Header.Get(events.HeaderReplay))
	return r, ok
}

// IsReplay reports whether an event must be claimed before it runs.
func IsReplay(e *events.Event) bool { return len(e.Header[events.HeaderReplay]) > 0 }

func claimSubject(owner, id string) string {
	return "$KV." + events.BucketAttempts + ".replay." + owner + "." + id
}

// Take claims a replay, and calls done with the result.
func (c *Claims) Take(r Replay, done func(Claim, error)) {
	m := &nats.Msg{Subject: claimSubject(r.Owner, r.ID), Header: nats.Header{jsapi.HeaderExpectLastSubjectSeq: {"0"}},
		Data: []byte(r.Nonce)}
	c.api.Store(m, func(_ jsapi.Ack, err error) {
		switch {
		case err == nil:
			c.noteClaim(r.Owner)
			done(Claimed, nil)
		case jsapi.IsWrongLastSequence(err):
			c.read(r, done)
		default:
			c.usage.Published(resources.BucketStream(events.BucketAttempts), err)
			done(0, err)
		}
	})
}

// read finds out which publish has claimed a replay.
func (c *Claims) read(r Replay, done func(Claim, error)) {
	c.api.LookUp(resources.BucketStream(events.BucketAttempts), claimSubject(r.Owner, r.ID),
		func(m *stored.Message, err error) {
			switch {
			case err != nil:
				done(0, err)
			case m == nil: // removed since
				c.Take(r, done)
			default:
				by, end := parseClaim(m.Data)
				switch {
				case by != r.Nonce:
					done(ClaimedOther, nil)
				case end != nil:
					done(ClaimEnded, nil)
				default:
					done(ClaimedAgain, nil)
				}
			}
		})
}

// End stores how a replay ended. It tries once.
func (c *Claims) End(r Replay, state ReplayState, f *events.Failure, letter uint64, at time.Time, done func(error)) {
	text, _ := json.Marshal(newReplayEnd(state, f, letter, at)) // strings, a number and a time of this century cannot fail
	m := &nats.Msg{Subject: claimSubject(r.Owner, r.ID), Data: append([]byte(r.Nonce+" "), text...)}
	c.api.Store(m, func(_ jsapi.Ack, err error) {
		c.usage.Published(resources.BucketStream(events.BucketAttempts), err)
		done(err)
	})
}

// count counts a claim, and reports whether it is time to remove the oldest.
func (c *Claims) count(owner string) bool {
	if c.made == nil || len(c.made) > claimOwners {
		c.made = make(map[string]int)
	}
	if c.made[owner]++; c.made[owner] < claimsSweep {
		return false
	}
	delete(c.made, owner)
	return true
}

// noteClaim counts a claim, and removes its owner's oldest claims beyond maxClaims.
func (c *Claims) noteClaim(owner string) {
	if !c.count(owner) || guard.StoredShares.Off() {
		return
	}
	var purged struct{}
	ask := map[string]any{"filter": claimSubject(owner, ">"), "keep": maxClaims}
	c.api.Call("$JS.API.STREAM.PURGE."+resources.BucketStream(events.BucketAttempts), ask, &purged, func(err error) {
		if err != nil {
			c.log.Debug().Err(err).Str("owner", owner).Msg("old claims of replays could not be removed; they stay until they expire")
		}
	})
}

// replayEnd is how a replay ended. It is stored after the nonce in the replay's claim, before the event's ack.
type replayEnd struct {
	State   ReplayState   `json:"state"`
	At      time.Time     `json:"at"`
	Reason  events.Reason `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"`
	Letter  uint64        `json:"letter,omitempty"` // number of the new dead letter
}

// endMessage is how much of a failure's message is kept with the end of a replay, in bytes.
const endMessage = 256

func newReplayEnd(state ReplayState, f *events.Failure, letter uint64, at time.Time) replayEnd {
	e := replayEnd{State: state, At: at.UTC(), Letter: letter}
	if f != nil {
		e.Reason, e.Message = f.Reason, strings.ToValidUTF8(f.Message[:min(len(f.Message), endMessage)], "")
	}
	return e
}

// parseClaim reads a claim: its nonce and, when the replay has ended, how.
func parseClaim(data []byte) (nonce string, end *replayEnd) {
	nonce, text, ended := strings.Cut(string(data), " ")
	if !ended {
		return nonce, nil
	}
	end = &replayEnd{}
	if err := json.Unmarshal([]byte(text), end); err != nil || end.State == "" {
		return nonce, nil
	}
	return nonce, end
}
