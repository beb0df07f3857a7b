package deploy

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// kept is what the bucket has for a worker.
type kept struct {
	records  []*record // readable, oldest first
	revision uint64    // of the newest entry of any kind; 0 = there is none
	newest   error     // why the newest entry cannot be read
}

func (s *Store) kept(ctx context.Context, owner, name string) (kept, error) {
	entries, err := s.kv.History(ctx, key(owner, name))
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return kept{}, fmt.Errorf("read worker %s/%s: %w", owner, name, err)
	}
	var k kept
	for _, e := range entries {
		k.revision, k.newest = e.Revision(), nil
		if e.Operation() != jetstream.KeyValuePut {
			k.records = nil
			continue
		}
		r, err := s.decode(e)
		if k.newest = err; err == nil {
			k.records = append(k.records, r)
		}
	}
	return k, nil
}

// active is the newest version; nil = there is none, or it cannot be read.
func (k kept) active() *record {
	if len(k.records) == 0 || k.newest != nil {
		return nil
	}
	return k.records[len(k.records)-1]
}

// nextNumber is the number of the next version. A newest record that cannot be read may have any number.
func (k kept) nextNumber() (int, error) {
	if k.newest != nil {
		return 0, fmt.Errorf("the active version cannot be read: %w; "+
			"remove the worker, or deploy with the Pinwheel that stored it", k.newest)
	}
	if a := k.active(); a != nil {
		return a.Number + 1, nil
	}
	return 1, nil
}
