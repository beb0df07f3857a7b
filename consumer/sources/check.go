package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Checker checks sources before a worker is deployed.
type Checker struct {
	Conns  Conns
	Prefix events.Subjects
}

// Check returns why the sources of a worker cannot be consumed, or nil. A *workers.SourceFault is for the author.
func (c Checker) Check(ctx context.Context, w *workers.Worker) error {
	for i, s := range w.Sources {
		why, err := c.fault(ctx, w.Target(), s)
		if err != nil {
			return err
		}
		if why != "" {
			return workers.NewSourceFault(i, "%s: %s", s, why)
		}
	}
	return nil
}

// notThere is the fault of a source without its stream, bucket or object store.
const notThere = "it is not there"

// fault returns why a source of a worker cannot be consumed; "" = it can.
func (c Checker) fault(ctx context.Context, target string, s workers.Source) (string, error) {
	conn := c.Conns[s.Connection]
	if conn == nil {
		return fmt.Sprintf("the fleet has no connection %q: it has %s (PINWHEEL_SOURCES)", s.Connection, c.Conns.names()), nil
	}
	if s.Subject != "" {
		return foreign(c.Prefix, []string{s.Subject}), nil
	}
	stream, err := conn.JS.Stream(ctx, s.StreamName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return notThere, nil
	}
	if err != nil {
		return "", fmt.Errorf("stream %s: %w", s.StreamName(), err)
	}
	if why := unreadable(c.Prefix, stream.CachedInfo(), s); why != "" {
		return why, nil
	}
	return taken(ctx, stream, target, s)
}

// foreign returns why subjects are those of a fleet; "" = they are not. A fleet of another account may have the usual
// prefix.
func foreign(prefix events.Subjects, subjects []string) string {
	for _, subject := range subjects {
		for _, p := range []events.Subjects{prefix, events.DefaultPrefix} {
			if workers.Overlap(subject, string(p)+".>") {
				return fmt.Sprintf("it has %s, and the subjects below %s are a fleet's", subject, p)
			}
		}
	}
	return ""
}

// unreadable returns why a stream cannot be a source; "" = it can.
func unreadable(prefix events.Subjects, info *jetstream.StreamInfo, s workers.Source) string {
	cfg := info.Config
	from := slices.Clone(cfg.Sources)
	if cfg.Mirror != nil {
		from = append(from, cfg.Mirror)
	}
	for _, f := range from {
		if strings.Contains(strings.ToUpper(f.Name), "PINWHEEL_") {
			return fmt.Sprintf("it copies %s, and names with PINWHEEL_ are those of fleets", f.Name)
		}
	}
	if why := foreign(prefix, cfg.Subjects); why != "" {
		return why
	}
	if cfg.Retention == jetstream.WorkQueuePolicy && s.Start.From != workers.StartAll {
		return `it is a work queue, which has only what nobody has taken: say "start": "all"`
	}
	for _, filter := range s.Filters() {
		if len(cfg.Subjects) > 0 && !slices.ContainsFunc(cfg.Subjects, func(has string) bool {
			return workers.Overlap(has, filter)
		}) {
			return fmt.Sprintf("it has the subjects %s, and none fits %s", strings.Join(cfg.Subjects, ", "), filter)
		}
	}
	return ""
}

// taken returns why another consumer of a work queue has the subjects of a source; "" = none has.
func taken(ctx context.Context, stream jetstream.Stream, target string, s workers.Source) (string, error) {
	if stream.CachedInfo().Config.Retention != jetstream.WorkQueuePolicy {
		return "", nil
	}
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.Metadata[metaWorker] == target {
			continue // of another version of the worker
		}
		if workers.FiltersOverlap(filtersOf(info.Config), s.Filters()) {
			return fmt.Sprintf("it is a work queue, and its consumer %s has these subjects", info.Name), nil
		}
	}
	return "", list.Err()
}
