package deploy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// BucketRoutes is the KV bucket that says which worker has a route. The key is made of the route, so that no two
// workers have one.
const BucketRoutes = "PINWHEEL_ROUTES"

// routeBook says which worker has a route.
type routeBook struct {
	kv         jetstream.KeyValue
	log        zerolog.Logger
	deployTime time.Duration // deployTime; tests have a shorter one
	// admit returns an error when the bucket has no room for so many bytes of the owner; full says what an error of the
	// bucket means.
	admit func(ctx context.Context, owner string, bytes int64) error
	full  func(ctx context.Context, err error) error
	// installed returns a worker with its kept versions. ok is false when there is none.
	installed func(ctx context.Context, owner, name string) (in workers.Installation, ok bool, err error)
}

func (s *Store) routeBook(kv jetstream.KeyValue) *routeBook {
	b := &routeBook{kv: kv, log: s.cfg.Log, deployTime: deployTime}
	b.installed = func(ctx context.Context, owner, name string) (in workers.Installation, ok bool, err error) {
		k, err := s.kept(ctx, owner, name)
		if ok = err == nil && len(k.records) > 0; ok {
			in = k.installation()
		}
		return in, ok, err
	}
	b.admit = func(ctx context.Context, owner string, bytes int64) error {
		return s.admitTo(ctx, BucketRoutes, owner, bytes, func() (int64, error) { return b.bytesOf(ctx, owner) })
	}
	b.full = func(ctx context.Context, err error) error { return s.full(ctx, BucketRoutes, err) }
	return b
}

// routeRecord is the value of a key.
type routeRecord struct {
	Route  string `json:"route"`
	Owner  string `json:"owner"`
	Worker string `json:"worker"`
	// Deploys are the deploys under way of versions that name the route, with the time when each took it. While there is
	// one, no other deploy gives the route up.
	Deploys map[string]time.Time `json:"deploys,omitempty"`
}

func (r routeRecord) key() string {
	sum := sha256.Sum256([]byte(r.Route))
	return hex.EncodeToString(sum[:16])
}

// isOf reports whether both are of the same worker.
func (r routeRecord) isOf(o routeRecord) bool { return r.Owner == o.Owner && r.Worker == o.Worker }

// deployTime is how long a deploy takes at most from the moment when it takes a route to the one when its version is
// active. A deploy may also have ended before that.
const deployTime = time.Minute

// promotion stands for a promotion among the deploys. Of two at once, the second one begins again.
const promotion = "promotion"

// underWay are the deploys of r that have not ended, as far as the time tells.
func (b *routeBook) underWay(r routeRecord) map[string]time.Time {
	left := maps.Clone(r.Deploys)
	maps.DeleteFunc(left, func(_ string, began time.Time) bool { return time.Since(began).Abs() >= b.deployTime })
	return left
}

// RouteTakenError says that a route is another worker's.
type RouteTakenError struct {
	Target string // "owner/name" that was to have it
	Route  string
	Holder string // "owner/name"; "" = it is of another owner
}

func (e *RouteTakenError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("%s is refused: route %s is a worker's of another owner", e.Target, e.Route)
	}
	return fmt.Sprintf("%s is refused: route %s is that of %s; deploy that one without it, or remove it", e.Target, e.Route, e.Holder)
}

// take takes the routes that w names for its worker. deploy names what makes w active; with ended, w is active. The
// error is a *RouteTakenError when another worker has one. Those that were taken before stay so until the worker's next
// change.
func (b *routeBook) take(ctx context.Context, w *workers.Worker, deploy string, ended bool) error {
	if w.HTTP == nil {
		return nil
	}
	routes := routesOf(w)
	if !ended {
		if err := b.admit(ctx, w.Owner, routeBytes(routes)); err != nil {
			return fmt.Errorf("take the routes of %s: %w", w.Target(), err)
		}
	}
	for _, route := range routes {
		if err := b.takeOne(ctx, routeRecord{Route: route, Owner: w.Owner, Worker: w.Name}, deploy, ended); err != nil {
			return err
		}
	}
	return nil
}

func (b *routeBook) takeOne(ctx context.Context, r routeRecord, deploy string, ended bool) error {
	for tries := conflicts(); ; {
		before, e, err := b.holder(ctx, r)
		if err != nil {
			return err
		}
		r.Deploys = nil
		if e != nil && before.isOf(r) {
			r.Deploys = b.underWay(before)
		} else if e != nil {
			if holds, err := b.holds(ctx, before); err != nil || holds {
				return errors.Join(err, taken(r, before))
			}
		}
		if delete(r.Deploys, deploy); !ended {
			if r.Deploys == nil {
				r.Deploys = map[string]time.Time{}
			}
			r.Deploys[deploy] = time.Now().UTC()
		}
		if err = b.put(ctx, r, e); err == nil {
			return nil
		}
		again := isConflict(err) || errors.Is(err, jetstream.ErrKeyExists)
		if wait := tries.NextBackOff(); !again || wait == backoff.Stop || !sleep(ctx, wait) {
			return fmt.Errorf("take route %s: %w", r.Route, b.full(ctx, err))
		}
	}
}

// put stores r, if the bucket still has before. nil = it had nothing.
func (b *routeBook) put(ctx context.Context, r routeRecord, before jetstream.KeyValueEntry) error {
	text, err := json.Marshal(r)
	switch {
	case err != nil:
	case before == nil:
		_, err = b.kv.Create(ctx, r.key(), text)
	default:
		_, err = b.kv.Update(ctx, r.key(), text, before.Revision())
	}
	return resources.Stranger(err, "$KV."+b.kv.Bucket()+"."+r.key())
}

// routeBytes is about what the records of routes take.
func routeBytes(routes []string) (n int64) {
	for _, r := range routes {
		n += int64(len(r)) + 400 // names, a deploy, key and headers
	}
	return n
}

// bytesOf is about what the routes of an owner take.
func (b *routeBook) bytesOf(ctx context.Context, owner string) (n int64, err error) {
	err = each(ctx, b.kv, ">", func(e jetstream.KeyValueEntry) error {
		var r routeRecord
		if json.Unmarshal(e.Value(), &r) == nil && r.Owner == owner {
			n += routeBytes([]string{r.Route})
		}
		return nil
	})
	return n, err
}

func taken(r, by routeRecord) *RouteTakenError {
	e := &RouteTakenError{Target: r.Owner + "/" + r.Worker, Route: r.Route}
	if by.Owner == r.Owner {
		e.Holder = by.Owner + "/" + by.Worker
	}
	return e
}

// holder is who has the route of r. The entry is nil when nobody has.
func (b *routeBook) holder(ctx context.Context,
	r routeRecord) (holder routeRecord, e jetstream.KeyValueEntry, err error) {
	e, err = b.kv.Get(ctx, r.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return holder, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value(), &holder)
	}
	if err != nil {
		return holder, nil, fmt.Errorf("read who has route %s: %w", r.Route, err)
	}
	return holder, e, nil
}

// holds reports whether the worker that took a route names it, or may do so soon.
func (b *routeBook) holds(ctx context.Context, r routeRecord) (bool, error) {
	if len(b.underWay(r)) > 0 {
		return true, nil
	}
	in, ok, err := b.installed(ctx, r.Owner, r.Worker)
	if err != nil {
		return true, err
	}
	return ok && slices.Contains(activeRoutes(in), r.Route), nil
}

// routesOf are the routes that a version names, each in its one form: two ways to write a route are one route.
func routesOf(w *workers.Worker) (routes []string) {
	for _, text := range w.HTTP.Routes {
		if r, err := workers.ParseRoute(text); err == nil { // a version was checked when it was stored
			text = r.Canonical().String()
		}
		routes = append(routes, text)
	}
	return routes
}

// activeRoutes are the routes of the versions that events are divided among.
func activeRoutes(in workers.Installation) (routes []string) {
	for _, share := range in.Deployment.Split {
		if w := in.Version(share.Version); w != nil && w.HTTP != nil {
			routes = append(routes, routesOf(w)...)
		}
	}
	return routes
}

// settle comes after a change of a worker. It gives up the routes that kept versions name and no active one does. One
// that cannot be given up is another worker's when that one wants it.
func (b *routeBook) settle(ctx context.Context, owner, name string) {
	in, ok, err := b.installed(ctx, owner, name)
	if err != nil || !ok {
		return
	}
	for _, route := range activeRoutes(in) {
		r := routeRecord{Route: route, Owner: owner, Worker: name}
		if holder, _, err := b.holder(ctx, r); err != nil || !holder.isOf(r) || holder.Deploys[promotion].IsZero() {
			continue
		}
		if err := b.takeOne(ctx, r, promotion, true); err != nil {
			b.log.Debug().Err(err).Str("route", route).Msg("the mark of a promotion stays for a minute")
		}
	}
	b.leave(ctx, in, activeRoutes(in))
}

// leave gives up the routes of all versions of in but those that stay.
func (b *routeBook) leave(ctx context.Context, in workers.Installation, stay []string) {
	done := map[string]bool{}
	for _, w := range in.Versions {
		if w.HTTP == nil {
			continue
		}
		for _, route := range routesOf(w) {
			r := routeRecord{Route: route, Owner: in.Owner, Worker: in.Name}
			if done[route] || slices.Contains(stay, route) {
				continue
			}
			done[route] = true
			holder, e, err := b.holder(ctx, r)
			if err == nil && e != nil && holder.isOf(r) && len(b.underWay(holder)) == 0 {
				err = b.kv.Purge(ctx, r.key(), jetstream.LastRevision(e.Revision()), jetstream.PurgeTTL(routeMarkers))
			}
			if err != nil && !isConflict(err) {
				b.log.Warn().Err(err).Str("worker", in.Target()).Str("route", route).Msg("a route could not be given up: another worker may take it")
			}
		}
	}
}
