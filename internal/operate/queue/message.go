package queue

import (
	"context"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Message is the message of a source that an event seems to be by its ID. Commands are made of it: all that is in it is
// from the list of sources, or a number.
type Message struct {
	Worker   string // OWNER/WORKER
	N        int    // of the source
	Stream   string
	Sequence uint64
}

// mostOfOne is about how many sources a worker has at most, also of those that it had.
const mostOfOne = 20

// FindMessage returns the message of an event by its ID, which publishers can choose. nil: it is of no source that the
// worker has, of several, or nobody tells.
func FindMessage(ctx context.Context, c *control.Client, owner, worker, id string) *Message {
	parts := strings.Split(id, ":")
	if len(parts) != 4 || parts[0] != "source" {
		return nil
	}
	seq, err := strconv.ParseUint(parts[3], 10, 64)
	if err != nil {
		return nil
	}
	// Consumers of one worker are beside each other in the list.
	first := sources.Record{Owner: owner, Worker: worker}.Consumer()
	list, err := control.Ask(ctx, c, control.SourcesList, control.ListSources{ListWorkers: control.ListWorkers{
		Owner: owner, After: strings.TrimSuffix(first, "0"), Limit: mostOfOne}})
	if err != nil {
		return nil
	}
	var found *Message
	for _, s := range list.Sources {
		if s.Worker != owner+"/"+worker || s.Stream != parts[1] || s.Removed {
			continue
		}
		if found != nil {
			return nil
		}
		found = &Message{s.Worker, s.N, s.Stream, seq}
	}
	return found
}
