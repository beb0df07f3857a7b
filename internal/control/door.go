package control

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
)

// The owner's door: endpoints that concern one owner are answered on PREFIX.owner.OWNER.NAME too. There the owner comes
// from the subject, which NATS permits to this owner's users only. No token is needed.

const (
	// maxDoor is how many requests of all owners a process handles at once, and maxOwnerDoor those of one owner. They
	// do not count in maxControl.
	maxDoor, maxOwnerDoor = 32, 4
	// doorRate is how many requests of an owner a process handles in a second, and doorBurst how many at once.
	doorRate, doorBurst = 50, 100
	// maxDoorIDs is how many letters a request of an owner may name.
	maxDoorIDs = 1000
	// knownDoors is how many owners a process remembers the rate of.
	knownDoors = 4096
)

// owned is a request that concerns one owner.
type owned interface {
	// restrict limits the request to an owner that the fleet has determined. It returns an error with code 403 if the
	// request names another one.
	restrict(owner string) error
}

// ownedOf does what endpointOf does, for an endpoint that is answered at the owner's door too.
func ownedOf[Request, Answer any, P interface {
	*Request
	owned
}](name string, e each, g guard, do func(*Server, context.Context, Request) (Answer, error),
) endpoint {
	of := endpointOf(name, e, g, do)
	of.door = func(ctx context.Context, s *Server, owner string, data []byte) (any, error) {
		var r Request
		if err := decodeRequest(data, &r); err != nil {
			return nil, err
		}
		if err := P(&r).restrict(owner); err != nil {
			return nil, err
		}
		return do(s, ctx, r)
	}
	return of
}

// doorSubject is where an endpoint is answered for an owner.
func doorSubject(prefix, owner, name string) string { return prefix + ".owner." + owner + "." + name }

// doorOwner returns the owner in a subject of the door.
func doorOwner(prefix, subject string) (owner string, ok bool) {
	rest, ok := strings.CutPrefix(subject, prefix+".owner.")
	owner, _, more := strings.Cut(rest, ".")
	return owner, ok && more && events.ValidName(owner)
}

// takeOwned answers one request at an owner's door.
func (s *Server) takeOwned(e endpoint, r micro.Request) {
	owner, ok := doorOwner(s.cfg.Prefix, r.Subject())
	if !ok {
		return // it has no owner, so no one may get an answer
	}
	decoder := events.Decoder{Subjects: s.subjects, ReplyPrefixes: s.cfg.ReplyPrefixes}
	if err := decoder.CheckReplyTo(r.Reply(), owner); err != nil {
		s.cfg.Log.Debug().Err(err).Str("endpoint", e.name).Str("owner", owner).Msg("request of an owner is not answered: its reply subject is no inbox of the owner")
		return
	}
	if err := s.doors.enter(owner, time.Now()); err != nil {
		s.respond(r, refusal(codeOf(err), err.Error()), nil)
		return
	}
	s.running.Go(func() {
		defer s.doors.leave(owner)
		s.serve(e, r, owner, func(ctx context.Context) (any, error) { return e.door(ctx, s, owner, r.Data()) })
	})
}

// doors limits what owners ask of a process.
type doors struct {
	mu     sync.Mutex
	busy   int
	owners map[string]*doorUse
}

// doorUse is what one owner asks.
type doorUse struct {
	busy int
	rate *rate.Limiter
}

// enter takes a slot for a request of an owner. Its error says why there is none.
func (d *doors) enter(owner string, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.owners[owner]
	if u == nil {
		if len(d.owners) >= knownDoors {
			d.forget(now)
		}
		u = &doorUse{rate: rate.NewLimiter(doorRate, doorBurst)}
		if d.owners == nil {
			d.owners = map[string]*doorUse{}
		}
		d.owners[owner] = u
	}
	switch {
	case !u.rate.AllowN(now, 1):
		return &Error{Code: http.StatusTooManyRequests, Text: fmt.Sprintf("rate: owner %s asks more than %d times in a second", owner, doorRate)}
	case u.busy >= maxOwnerDoor:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("owner %s has %d requests under way in this process: try again", owner, u.busy)}
	case u.busy >= maxDoor-d.busy: // at most as many as are free
		return &Error{Code: http.StatusServiceUnavailable, Text: "this process has too many requests of owners under way: try again"}
	}
	u.busy++
	d.busy++
	return nil
}

// leave returns the slot.
func (d *doors) leave(owner string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owners[owner].busy--
	d.busy--
}

// forget removes owners that ask nothing, and all but those with requests under way if that is not enough.
func (d *doors) forget(now time.Time) {
	for name, u := range d.owners {
		if u.busy == 0 && u.rate.TokensAt(now) >= doorBurst {
			delete(d.owners, name)
		}
	}
	for name, u := range d.owners {
		if len(d.owners) < knownDoors {
			return
		}
		if u.busy == 0 {
			delete(d.owners, name)
		}
	}
}

// foreign is the error of a request that names another owner.
func foreign(field, named, owner string) error {
	return &Error{Code: http.StatusForbidden, Field: field, Text: fmt.Sprintf("%s %.80q is not of owner %s, whose door this is", field, named, owner)}
}

// fixOwner sets the owner of a filter.
func fixOwner(named *string, owner string) error {
	if *named != "" && *named != owner {
		return foreign("owner", *named, owner)
	}
	*named = owner
	return nil
}

// fixBoth sets the owner of a filter that may have it in the worker too, as OWNER/WORKER.
func fixBoth(named, worker *string, owner string) error {
	if o, w, both := strings.Cut(*worker, "/"); both {
		if o != owner {
			return foreign("worker", *worker, owner)
		}
		*worker = w
	}
	return fixOwner(named, owner)
}

// fixWorker sets the owner of a worker that is named as OWNER/WORKER, or as WORKER.
func fixWorker(worker *string, owner string) error {
	o, _, both := strings.Cut(*worker, "/")
	switch {
	case both && o != owner:
		return foreign("worker", *worker, owner)
	case !both && *worker != "":
		*worker = owner + "/" + *worker
	}
	return nil
}
