package certificates

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// mirror is a copy of the fleet's values for one directory. So a connection of a stranger causes no request to NATS.
type mirror struct {
	prefix string
	log    zerolog.Logger
	ready  chan struct{} // closed when all that was stored has come once

	mu      sync.Mutex
	once    bool // ready is closed
	pass    int
	values  map[string]value
	changed chan struct{} // closed and replaced at each change
}

// value is what is stored at a key.
type value struct {
	sealed   []byte
	revision uint64
	pass     int // in which it came
}

func newMirror(prefix string, log zerolog.Logger) *mirror {
	return &mirror{prefix: prefix, log: log, ready: make(chan struct{}), values: map[string]value{},
		changed: make(chan struct{})}
}

// get returns a value, and what is closed at the next change of any.
func (m *mirror) get(key string) (v value, ok bool, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok = m.values[m.prefix+key]
	return v, ok, m.changed
}

// changes returns what is closed at the next change.
func (m *mirror) changes() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// with returns what follows kind in all keys that begin with it.
func (m *mirror) with(kind string) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.values {
		if name, ok := strings.CutPrefix(key, m.prefix+kind); ok {
			names = append(names, name)
		}
	}
	return names
}

// set records a value that has come from the bucket. An older one than is known changes nothing.
func (m *mirror) set(key string, v value) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.values[key]; ok && old.revision > v.revision && old.pass == v.pass {
		return
	}
	m.replace(key, v)
}

// put records a value that this process has stored.
func (m *mirror) put(key string, sealed []byte, revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replace(key, value{sealed, revision, m.pass})
}

// replace replaces a value. The caller holds the lock.
func (m *mirror) replace(key string, v value) {
	m.values[key] = v
	close(m.changed)
	m.changed = make(chan struct{})
}

// remove records that a key was removed at a revision. A value that was stored since stays.
func (m *mirror) remove(key string, revision uint64, pass int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.values[key]; ok && (old.revision < revision || old.pass != pass) {
		delete(m.values, key)
	}
}

// settle forgets what did not come in a pass.
func (m *mirror) settle(pass int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, v := range m.values {
		if v.pass < pass {
			delete(m.values, key)
		}
	}
	if !m.once {
		m.once = true
		close(m.ready)
	}
}

// watch follows the bucket until ctx is done. Each pass reads all of it again, because a watch may have died unnoticed,
// and a bucket may have been created again.
func (m *mirror) watch(ctx context.Context, open func(context.Context) (jetstream.KeyValue, error), each,
	again time.Duration) {
	for pass := 1; ctx.Err() == nil; pass++ {
		limit, cancel := context.WithTimeout(ctx, each)
		err := m.follow(limit, open, pass)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		m.log.Warn().Err(err).Msg("the bucket of certificates cannot be read; trying again")
		pause := time.NewTimer(again)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

func (m *mirror) follow(ctx context.Context, open func(context.Context) (jetstream.KeyValue, error), pass int) error {
	kv, err := open(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.pass = pass
	m.mu.Unlock()
	w, err := kv.Watch(ctx, m.prefix+">")
	if err != nil {
		return err
	}
	defer resources.StopWatch(w)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("the watch was closed")
			case e == nil:
				m.settle(pass)
			case e.Operation() == jetstream.KeyValuePut:
				m.set(e.Key(), value{e.Value(), e.Revision(), pass})
			default:
				m.remove(e.Key(), e.Revision(), pass)
			}
		}
	}
}
