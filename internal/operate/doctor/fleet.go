package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

const (
	// skewWarn and skewBad are differences between clocks. Deadlines, delays and ticks are wrong by the same amount.
	skewWarn = time.Second
	skewBad  = 5 * time.Second
	// answerWait is how long processes have to answer after the first. busyWait is how long the first has: on a machine
	// without a free processor it takes its time. Where nobody listens, the server says so at once.
	answerWait = 500 * time.Millisecond
	busyWait   = 3 * time.Second
)

// serverNow returns how far the clock of JetStream is ahead of this machine's. It also returns the error of that
// figure, which is half the round trip.
func (p *checker) serverNow(ctx context.Context) (ahead, give time.Duration, ok bool) {
	best := time.Hour
	for range 3 {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		sent := time.Now()
		s, err := p.js.Stream(ctx, events.StreamEvents)
		trip := time.Since(sent)
		cancel()
		if err != nil || s.CachedInfo().TimeStamp.IsZero() || trip >= best {
			continue
		}
		best, ok = trip, true
		ahead = s.CachedInfo().TimeStamp.Sub(sent.Add(trip / 2))
	}
	return ahead, best / 2, ok
}

// clock compares this machine's clock with the server's.
func (p *checker) clock(ctx context.Context) {
	ahead, give, ok := p.serverNow(ctx)
	if !ok {
		return
	}
	p.skew("the server's clock", ahead, give)
}

func (p *checker) skew(whose string, ahead, give time.Duration) {
	text := fmt.Sprintf("%s and this machine's differ by %s (± %s)", whose, ahead.Round(time.Millisecond),
		give.Round(time.Millisecond))
	do := "see to NTP: deadlines, delays and ticks are off by as much"
	switch off := ahead.Abs() - give; {
	case off >= skewBad:
		p.bad("clock", do, "%s", text)
	case off >= skewWarn:
		p.warn("clock", do, "%s", text)
	default:
		p.ok("clock", "%s", text)
	}
}

// processStats is what a process reports on $SRV.STATS.
type processStats struct {
	Now      time.Time `json:"now"`
	Vanished int       `json:"vanished"`
	Consumer *struct {
		Ready    bool   `json:"ready"`
		Storage  string `json:"storage"`
		SetAside int64  `json:"setAside"`
	} `json:"consumer"`
	Secrets secretStats `json:"secrets"`
	Deploys *followed   `json:"deploys"`
	// Settings are those that the process was started with.
	Settings map[string]string `json:"settings"`
	// Compilers are those of V8 in the process. "" = an earlier release, which has all.
	Compilers string `json:"compilers"`
	// Unconfined are the parts of the confinement that the system of the process refuses.
	Unconfined []string `json:"unconfined"`
	pausedOf
	Sources *sourceStats `json:"sources"`
	cellsOf
}

// processes asks the processes of the fleet for their versions, states and clocks.
func (p *checker) processes(ctx context.Context, all []found) {
	asked := time.Now()
	answers, err := gather(ctx, p.NC, "$SRV.STATS.pinwheel", nil, busyWait)
	if err != nil {
		p.warn("processes", "", "the fleet cannot be asked: %v", err)
		return
	}
	versions, compilers := map[string]int{}, map[string]int{}
	var cells cellsFound
	n, notReady, vanished := 0, 0, 0
	var secrets secretsFound
	var paused pausedOf
	var sources sourcesFound
	deploys := deploysFound{newest: storedDeploys(all)}
	for _, m := range answers {
		var s micro.Stats
		if json.Unmarshal(m.Data, &s) != nil || s.Metadata["prefix"] != string(p.Subjects) {
			continue
		}
		n++
		versions[cmp.Or(s.Metadata["version"], s.Version)]++
		data := p.process(&s, asked)
		compilers[cmp.Or(data.Compilers, allCompilers)]++
		cells.take(p, s.Metadata["node"], data.cellsOf)
		if data.Consumer != nil && !data.Consumer.Ready {
			notReady++
		}
		vanished = max(vanished, data.Vanished)
		paused.take(data.pausedOf)
		sources.take(data.Sources)
		secrets.take(s.Metadata["node"], data.Secrets)
		deploys.take(s.Metadata["node"], data.Deploys)
		p.settings(s.Metadata["node"], data.Settings, all)
		p.confined(s.Metadata["node"], data.Unconfined)
	}
	secrets.report(p)
	deploys.report(p)
	if vanished > 0 {
		p.bad("workers", "restore the bucket of workers, or deploy them again; 'pinwheel workers rm' ends one for good",
			"%d workers still run although their records are gone and no one removed them: a process that starts does not run them", vanished)
	}
	paused.report(p)
	sources.report(p)
	switch {
	case n == 0:
		p.bad("processes", "start one with 'pinwheel serve'; or this user may not ask $SRV.STATS", "no process of the fleet answers")
		return
	case notReady > 0:
		p.warn("processes", "see their logs", "%d of %d processes take no events", notReady, n)
	default:
		p.ok("processes", "%d take events", n)
	}
	if len(versions) > 1 || p.Version != "" && versions[p.Version] == 0 {
		p.warn("versions", "let all run the same, once a rolling restart is over", "the processes run %s; this is %s", counts(versions),
			p.Version)
	}
	p.compilers(compilers)
	cells.report(p)
}

// allCompilers is PINWHEEL_COMPILERS of a process that has all of V8's.
const allCompilers = "full"

// compilers says which compilers of V8 the processes have, unless all have all.
func (p *checker) compilers(by map[string]int) {
	switch {
	case len(by) > 1:
		p.warn("compilers", "set PINWHEEL_COMPILERS for all alike, once a rolling restart is over",
			"workers get other compilers of V8 in some processes: %s", counts(by))
	case by[allCompilers] == 0:
		p.ok("compilers", "owners get no more compilers of V8 than PINWHEEL_COMPILERS allows: %s", counts(by))
	}
}

// process checks the report of one process.
func (p *checker) process(s *micro.Stats, asked time.Time) (data processStats) {
	for _, e := range s.Endpoints {
		if json.Unmarshal(e.Data, &data) == nil && data.Consumer != nil {
			break
		}
	}
	if data.Consumer != nil && data.Consumer.Storage != "" {
		p.bad("disk", "make room, or raise the limit: what cannot be stored is refused, or waits", "process %s: %s", s.Metadata["node"], data.Consumer.Storage)
	}
	if data.Consumer != nil && data.Consumer.SetAside > 0 {
		p.warn("events", "its log says which, and why: they are delivered again later", "process %s set aside %d events lately, which it could not settle",
			s.Metadata["node"], data.Consumer.SetAside)
	}
	if late := data.Now.Sub(asked); !data.Now.IsZero() && (late < -skewWarn || late > answerWait+skewWarn) {
		p.skew("the clock of process "+s.Metadata["node"], late, answerWait/2)
	}
	return data
}

// confined says which parts of the confinement a process has not.
func (p *checker) confined(node string, missing []string) {
	if len(missing) > 0 {
		p.warn("confinement", "run it on a kernel with Landlock (5.13 and later) and seccomp, which containers may deny: a flaw of V8 reaches more there",
			"process %s is not confined in all parts: %s", node, strings.Join(missing, "; "))
	}
}

// settings checks whether a process was started with other settings than the fleet has. It works with those of the
// fleet; a fleet without streams would get its own.
func (p *checker) settings(node string, of map[string]string, all []found) {
	if p.For == nil || of == nil {
		return
	}
	have := map[string]resources.Finding{}
	for _, f := range all {
		have[f.Resource.String()] = f.Finding
	}
	var list []string
	lanes := false // one consumer stands for all
	for _, want := range p.For(of) {
		f, ok := have[want.String()]
		if !ok || f.Foreign != nil || f.Newer() || want.Consumer != nil && lanes {
			continue
		}
		for _, d := range f.Against(want) {
			if !d.Adds() {
				list = append(list, want.String()+": "+d.String())
				lanes = lanes || want.Consumer != nil
			}
		}
	}
	if list != nil {
		p.warn("settings", "start it with the fleet's settings, or change those of the fleet with 'pinwheel resources apply'",
			"process %s was started with settings that are not the fleet's: %s", node, strings.Join(list, ", "))
	}
}

func counts(m map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprintf("%d × %s", m[name], name))
	}
	return strings.Join(list, ", ")
}

// progress looks for events that no process runs.
func (p *checker) progress(ctx context.Context, all []found) {
	before := map[string]*jetstream.ConsumerInfo{}
	busy := false
	for _, f := range all {
		if f.Info != nil {
			before[f.Info.Name] = f.Info
			busy = busy || f.Info.NumPending > 0 || f.Info.NumAckPending > 0
		}
	}
	if busy {
		select {
		case <-ctx.Done():
		case <-time.After(p.Progress):
		}
	}
	waiting, held, again, stuck := uint64(0), 0, 0, 0
	for _, f := range all {
		if f.Info == nil {
			continue
		}
		now := f.Info
		if busy {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			if c, err := p.js.Consumer(ctx, f.Of, f.Info.Name); err == nil {
				now = c.CachedInfo()
			}
			cancel()
		}
		waiting += now.NumPending
		held += now.NumAckPending
		again += now.NumRedelivered
		was := before[now.Name]
		still := now.Delivered.Consumer == was.Delivered.Consumer && now.AckFloor.Consumer == was.AckFloor.Consumer &&
			now.NumAckPending == was.NumAckPending
		if now.NumPending > 0 && still {
			stuck++
			why := fmt.Sprintf("%d held by processes", now.NumAckPending)
			if now.NumWaiting == 0 {
				why = "no process asks for them"
			}
			p.bad("progress", "see the logs of the processes, and that they have room (pinwheel_held_events)", "%s: %d events wait and none moved for %s; %s", now.Name,
				now.NumPending, p.Progress, why)
		}
	}
	if stuck == 0 {
		p.ok("progress", "%d events wait, %d are held by processes", waiting, held)
	}
	if again > 0 {
		p.warn("redeliveries", "expected for a while after a process died or was cut off; else see its logs", "%d of the held events have come more than once", again)
	}
	p.counts(ctx, all, waiting, held)
}

// counts checks which messages are left in the streams.
func (p *checker) counts(ctx context.Context, all []found, waiting uint64, held int) {
	for _, f := range all {
		if f.Resource.Stream == nil {
			continue
		}
		state := f.Finding.Stream.State
		switch f.Resource.Stream.Name {
		case events.StreamDead:
			if state.Msgs > 0 {
				p.warn("dead", "pinwheel dead ls", "%d dead letters", state.Msgs)
			} else {
				p.ok("dead", "no dead letters")
			}
		case events.StreamParked:
			if n, err := resources.Count(ctx, p.js, events.StreamParked, p.Subjects.ParkedAnchor()); err == nil && n > 0 {
				p.warn("parked", "they run when their owners have room; pinwheel owners set OWNER raises it", "%d events over their owners' limits wait in %s", n,
					events.StreamParked)
			}
		case events.StreamEvents:
			// The figures come from different moments, so the doctor does not compare them with each other.
			if waiting > 0 || held > 0 || state.Msgs <= 1 {
				continue
			}
			if left, err := resources.Count(ctx, p.js, events.StreamEvents, p.Subjects.Anchor()); err == nil && left > 0 {
				p.warn("leftovers", "a process removes them within five minutes; pinwheel_swept_messages_total counts", "%d acked events are still in %s", left,
					events.StreamEvents)
			}
		}
	}
}
