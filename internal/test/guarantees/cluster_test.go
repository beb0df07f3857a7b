package guarantees_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// election is the fault that a stream or consumer got another leader. Its name contains "server" because replies may be
// lost then.
const election = "election of a server"

// openCluster starts the servers, each in its own process. The processes of the fleet reach all of them, and each
// process starts with a different one.
func (h *testFleet) openCluster(n, servers int) (urls []string) {
	h.model.loose = true
	h.cluster = natstest.StartCluster(h.t, servers)
	for i := range n + 1 {
		urls = append(urls, h.cluster.URLs(i%servers))
	}
	return urls
}

// ofCluster returns the faults of a fleet with a cluster of servers. At most one server is down or cut off at a time.
func (b *breaker) ofCluster() []chance {
	b.watchElections()
	return []chance{
		{"kill fleet", 3, b.killFleet}, {"kill fleet, all", 1, b.killAll}, {"drain", 2, b.drain},
		{"roll fleet", 1, b.rollFleet}, {"pause fleet", 1, b.pauseFleet},
		{"kill server", 2, b.killMember}, {"kill server that leads the events", 3, b.killMember},
		{"roll servers", 1, b.rollServers}, {"cut server", 2, b.cutMember},
		{"redeploy", 2, b.redeploy}, {"replay", 2, b.replay}, {"fill", 1, b.fill}, {"step clock", 2, b.stepClock},
		{"remake events", 1, b.remake}, {"remake schedules", 1, b.remake}, {"calm", 1, nil},
	}
}

// watchElections records each change of a leader as a fault. Servers that lack CPU time elect leaders by themselves,
// and messages that were just delivered or acked may then be delivered again.
func (b *breaker) watchElections() {
	for _, what := range []string{"STREAM.LEADER_ELECTED.*", "STREAM.QUORUM_LOST.*", "CONSUMER.LEADER_ELECTED.*.*",
		"CONSUMER.QUORUM_LOST.*.*"} {
		_, err := b.nc.Subscribe("$JS.EVENT.ADVISORY."+what, func(m *nats.Msg) {
			var advisory struct{ Stream string }
			if json.Unmarshal(m.Data, &advisory) == nil {
				b.count("elections seen of what is in " + advisory.Stream)
			}
			b.model.moment(election)
		})
		require.NoError(b.t, err)
		require.NoError(b.t, b.nc.Flush())
	}
	require.NoError(b.t, b.nc.Flush())
}

// moment records a fault that is over when it is noticed. Faults that follow each other closely count as one.
func (m *model) moment(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for i := len(m.faults) - 1; i >= 0; i-- {
		if f := &m.faults[i]; f.kind == kind {
			if now.Before(f.until) {
				f.until = now.Add(settleTime)
				return
			}
			break
		}
	}
	m.faults = append(m.faults, fault{kind: kind, from: now.Add(-settleTime), until: now.Add(settleTime)})
}

// rollFleet replaces all processes, one after the other.
func (b *breaker) rollFleet(kind string, _ int, long time.Duration) {
	for who := range b.fleet {
		b.drain(kind, who, long)
	}
}

// killMember kills a server, starts it again, and waits until its copies are current.
func (b *breaker) killMember(kind string, who int, long time.Duration) {
	if !b.serving.TryLock() {
		return
	}
	defer b.serving.Unlock()
	if strings.Contains(kind, "leads") {
		if leader, _ := b.cluster.Leader(b.js, events.StreamEvents); leader >= 0 {
			who = leader
		}
	}
	mended := b.model.broken(kind)
	b.cluster.Kill(who)
	pause(long)
	b.cluster.Start(who)
	b.untilCurrent(kind)
	mended()
}

// cutMember cuts a server off from the others, though not from its clients.
func (b *breaker) cutMember(kind string, who int, long time.Duration) {
	if !b.serving.TryLock() {
		return
	}
	defer b.serving.Unlock()
	mended := b.model.broken(kind)
	b.cluster.Cut(who)
	pause(4 * long)
	b.cluster.Heal(who)
	b.untilCurrent(kind)
	mended()
}

// rollServers replaces all servers as an operator does: one after the other, each when all copies are current.
func (b *breaker) rollServers(kind string, first int, _ time.Duration) {
	if !b.serving.TryLock() {
		return
	}
	defer b.serving.Unlock()
	for i := range *servers {
		mended := b.model.broken(kind)
		who := (first + i) % *servers
		b.cluster.Stop(who)
		b.cluster.Start(who)
		b.untilCurrent(kind)
		mended()
	}
}

// copiesPatience is how long the servers may take to bring a copy up to date. No one else can do that for them. On a
// machine under load, the copy of the attempts fell further behind for up to a minute after its server had returned.
// Then it was brought up to date at once.
const copiesPatience = 5 * time.Minute

// untilCurrent waits until every copy is current, so that another server may be stopped.
func (b *breaker) untilCurrent(kind string) {
	began := time.Now()
	for told := began; ; pause(50 * time.Millisecond) {
		late, err := b.behind()
		if err == nil && late == "" {
			b.timed("all copies current after: "+kind, time.Since(began))
			return
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			b.t.Logf("%s after %s not all copies are current: %s, %v", time.Since(began).Round(time.Second), kind, late, err)
		}
		if time.Since(began) > copiesPatience {
			b.t.Errorf("%s: not all copies are current %s after the server came back: %s, %v", kind, copiesPatience, late, err)
			return
		}
	}
}

// behind names a stream or consumer that has no leader, or a copy that is offline or far behind.
func (b *breaker) behind() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	late := func(name string, c *jetstream.ClusterInfo) string {
		if c == nil || c.Leader == "" || len(c.Replicas) != *servers-1 {
			return name + " has no leader"
		}
		for _, r := range c.Replicas {
			if r.Offline || resources.Behind(r) {
				return fmt.Sprintf("%s on %s: offline %t, lag %d", name, r.Name, r.Offline, r.Lag)
			}
		}
		return ""
	}
	streams := b.js.ListStreams(ctx)
	n := 0
	for s := range streams.Info() {
		n++
		if l := late(s.Config.Name, s.Cluster); l != "" {
			return l, nil
		}
	}
	if err := streams.Err(); err != nil {
		return "", err
	}
	for _, name := range []string{events.StreamEvents, events.StreamSchedules} {
		s, err := b.js.Stream(ctx, name)
		if err != nil {
			return "", err
		}
		consumers := s.ListConsumers(ctx)
		for c := range consumers.Info() {
			n++
			if l := late(name+" "+c.Name, c.Cluster); l != "" {
				return l, nil
			}
		}
		if err := consumers.Err(); err != nil {
			return "", err
		}
	}
	if b.assets = max(b.assets, n); n < b.assets {
		return "", errors.New("not all of it is listed")
	}
	return "", nil
}

// timed records how long something took.
func (h *testFleet) timed(what string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[what] = append(h.times[what], d)
}

// recoveredAfter returns the time from the beginning of a fault until every owner had run an event that was published
// after that beginning. For overlapping faults it is the time of all of them.
func (m *model) recoveredAfter(f fault) (all time.Duration) {
	for _, owner := range owners {
		first := time.Duration(-1)
		for _, o := range m.list {
			if d := o.first.Sub(f.from); o.owner == owner && o.delay == 0 && o.sent.After(f.from) && !o.first.IsZero() &&
				(first < 0 || d < first) {
				first = d
			}
		}
		all = max(all, first)
	}
	return all
}

// reportRecovery logs how long recovery took after each kind of fault.
func (h *testFleet) reportRecovery() {
	h.model.mu.Lock()
	for _, f := range h.model.faults {
		if f.kind != election && f.kind != starvation {
			h.timed("a new event of every owner ran after: "+f.kind, h.model.recoveredAfter(f))
		}
	}
	h.model.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(h.times)) {
		list := slices.Sorted(slices.Values(h.times[what]))
		lines = append(lines, fmt.Sprintf("  %s: median %s, worst %s, of %d", what,
			list[len(list)/2].Round(time.Millisecond), list[len(list)-1].Round(time.Millisecond), len(list)))
	}
	h.t.Logf("times:\n%s", strings.Join(lines, "\n"))
}
