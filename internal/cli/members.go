package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// memberBeat is how often a process says that it is there.
	memberBeat = time.Second
	// memberMisses is how many of our own beats come back to us without a word of another before it counts as gone. Counted like
	// that, a NATS that is away or slow makes nobody disappear.
	memberMisses = 3
	memberBye    = "bye "
	// membersLeft is how many of those that said that they go are remembered.
	membersLeft = 64
)

// members counts the processes of the fleet by what they say on core NATS.
type members struct {
	nc      *nats.Conn
	subject string
	id      string // and, after a space, the name of the node
	set     func(n int)

	mu   sync.Mutex
	sub  *nats.Subscription
	beat int64            // of our own that came back
	seen map[string]int64 // others, and the beat at which they were last heard
	left []string         // the last that said that they go, by id
	told int
}

// openMembers begins to listen.
func (f *fleet) openMembers() (*members, error) {
	m := &members{
		nc: f.nc, subject: f.cfg.Prefix + ".control.members", id: nats.NewInbox() + " " + nodeName(), seen: map[string]int64{}, told: 1,
		set: func(n int) {
			f.log.Info().Int("processes", n).Msg("processes of the fleet")
			f.dispatch.SetProcesses(n)
			f.consumer.SetProcesses(n)
		},
	}
	var err error
	m.sub, err = f.nc.Subscribe(m.subject, m.hear)
	return m, err
}

// run says that this process is there until ctx is done, and then that it goes.
func (m *members) run(ctx context.Context) {
	tick := time.NewTicker(memberBeat)
	defer tick.Stop()
	for {
		_ = m.nc.Publish(m.subject, []byte(m.id)) // not connected: the next one tells
		select {
		case <-ctx.Done():
			_ = m.sub.Unsubscribe()
			_ = m.nc.Publish(m.subject, []byte(memberBye+m.id))
			return
		case <-tick.C:
		}
	}
}

// hear takes one process's word. It is called by one goroutine.
func (m *members) hear(msg *nats.Msg) {
	id, gone := strings.CutPrefix(string(msg.Data), memberBye)
	m.mu.Lock()
	_, known := m.seen[id]
	switch {
	case gone:
		delete(m.seen, id)
		p, _ := processOf(id)
		m.left = append(m.left, p.ID)
		m.left = m.left[max(0, len(m.left)-membersLeft):]
	case id == m.id:
		m.beat++
		for other, beat := range m.seen {
			if m.beat-beat > memberMisses {
				delete(m.seen, other)
			}
		}
	default:
		m.seen[id] = m.beat
	}
	n := len(m.seen) + 1
	changed := n != m.told
	m.told = n
	m.mu.Unlock()
	if !gone && !known && id != m.id { // it is new, and does not know of us
		_ = m.nc.Publish(m.subject, []byte(m.id))
	}
	if changed {
		m.set(n)
	}
}

// process is one of the fleet.
type process struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// processOf is the process that says text; of one that says no node, which is of an earlier binary, ok is false.
func processOf(text string) (p process, ok bool) {
	p.ID, p.Node, ok = strings.Cut(text, " ")
	return p, ok
}

// gone are the last processes that said that they go, by id.
func (m *members) gone() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.left)
}

// known are this process and all that are there, as far as it knows, this one among them, by node.
func (m *members) known() (self process, all []process) {
	self, _ = processOf(m.id)
	all = append(all, self)
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.seen {
		if p, ok := processOf(id); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b process) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID)) })
	return self, all
}
