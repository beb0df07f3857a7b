package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

const (
	// memberBeat is how often a process announces itself.
	memberBeat = time.Second
	// memberMisses is how many of this process's own announcements come back without one from another process before
	// that process counts as gone. With this way of counting, no process disappears because NATS is unreachable or
	// slow.
	memberMisses = 3
	// membersLeft is how many of the processes that announced that they leave are remembered.
	membersLeft = 64
)

// members knows the processes of the fleet from their announcements on core NATS.
type members struct {
	nc      *nats.Conn
	subject string
	self    control.Member
	set     func(n int)

	mu       sync.Mutex
	sub      *nats.Subscription
	beat     int64                    // number of own announcements that came back
	seen     map[control.Member]int64 // other processes, and the beat of their last announcement
	left     []string                 // IDs of the last processes that announced that they leave
	reported int                      // last number that set was called with
}

// openMembers subscribes to the announcements.
func (p *Process) openMembers() (*members, error) {
	m := &members{
		nc: p.link.nc, subject: control.MembersSubject(p.cfg.Prefix), seen: map[control.Member]int64{}, reported: 1,
		self: control.Member{ID: nats.NewInbox(), Node: nodeName()},
		set: func(n int) {
			p.log.Info().Int("processes", n).Msg("processes of the fleet")
			p.rooms.setProcesses(n)
		},
	}
	var err error
	m.sub, err = m.nc.Subscribe(m.subject, m.hear)
	return m, err
}

// run announces this process until ctx is done. Then it announces that the process leaves.
func (m *members) run(ctx context.Context) {
	tick := time.NewTicker(memberBeat)
	defer tick.Stop()
	for {
		_ = m.nc.Publish(m.subject, []byte(m.self.Hello())) // not connected: the next one counts
		select {
		case <-ctx.Done():
			_ = m.sub.Unsubscribe()
			_ = m.nc.Publish(m.subject, []byte(m.self.Bye()))
			return
		case <-tick.C:
		}
	}
}

// hear takes an announcement. Only one goroutine calls it.
func (m *members) hear(msg *nats.Msg) {
	member, leaves, _ := control.ParseMember(string(msg.Data))
	m.mu.Lock()
	_, known := m.seen[member]
	switch {
	case leaves:
		delete(m.seen, member)
		m.left = append(m.left, member.ID)
		m.left = m.left[max(0, len(m.left)-membersLeft):]
	case member == m.self:
		m.beat++
		for other, beat := range m.seen {
			if m.beat-beat > memberMisses {
				delete(m.seen, other)
			}
		}
	default:
		m.seen[member] = m.beat
	}
	n := len(m.seen) + 1
	changed := n != m.reported
	m.reported = n
	m.mu.Unlock()
	if !leaves && !known && member != m.self { // a new process does not know this one
		_ = m.nc.Publish(m.subject, []byte(m.self.Hello()))
	}
	if changed {
		m.set(n)
	}
}

// gone returns the IDs of the last processes that announced that they leave.
func (m *members) gone() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.left)
}

// known returns the processes that this one knows, including itself, sorted by node. It leaves out processes of an
// earlier binary, which send no node.
func (m *members) known() []control.Member {
	all := []control.Member{m.self}
	m.mu.Lock()
	defer m.mu.Unlock()
	for member := range m.seen {
		if member.Node != "" {
			all = append(all, member)
		}
	}
	slices.SortFunc(all,
		func(a, b control.Member) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID)) })
	return all
}
