package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Level is the severity of a finding.
type Level string

// Levels. Warn: it works now but may stop working, or the doctor cannot find out. Bad: a promise is broken.
const (
	OK   Level = "ok"
	Warn Level = "warn"
	Bad  Level = "bad"
)

// Line is the result of one check.
type Line struct {
	Level Level  `json:"level"`
	Check string `json:"check"`        // what was checked, in one word
	Text  string `json:"text"`         // what was found
	Do    string `json:"do,omitempty"` // what the operator should do
}

// Config says where to look and what to expect.
type Config struct {
	NC *nats.Conn
	// Monitors are URLs of the servers' monitoring ports; may be empty.
	Monitors []string
	Subjects events.Subjects
	// Resources are all JetStream resources of the fleet. The event stream comes first.
	Resources []resources.Resource
	// For returns the resources as a process with these settings of its own wants them; nil: that is not checked.
	For func(settings map[string]string) []resources.Resource
	// Replicas and Fsync are the configured values.
	Replicas int
	Fsync    bool
	// Version is the version of this binary, in the form in which processes report it.
	Version string
	// Progress is how long a lane is watched for progress.
	Progress time.Duration
	// Anonymous connects without credentials, or is nil.
	Anonymous func() (*nats.Conn, error)
}

// checker runs the checks one after the other.
type checker struct {
	Config
	js    jetstream.JetStream
	lines []Line
}

func (p *checker) ok(check, format string, args ...any) {
	p.lines = append(p.lines, Line{OK, check, fmt.Sprintf(format, args...), ""})
}

func (p *checker) warn(check, do, format string, args ...any) {
	p.lines = append(p.lines, Line{Warn, check, fmt.Sprintf(format, args...), do})
}

func (p *checker) bad(check, do, format string, args ...any) {
	p.lines = append(p.lines, Line{Bad, check, fmt.Sprintf(format, args...), do})
}

// Examine runs all checks. It skips a check if something that the check needs is missing.
func Examine(ctx context.Context, c Config) []Line {
	p := &checker{Config: c}
	js, err := jetstream.New(c.NC)
	if err != nil {
		p.bad("nats", "", "%v", err)
		return p.lines
	}
	p.js = js
	p.server()
	if !p.account(ctx) {
		p.strangers(ctx)
		return p.lines
	}
	found := p.resources(ctx)
	p.durability(ctx, found)
	p.cluster(found)
	p.usage(found)
	p.writes(ctx, found)
	p.answers(ctx, found)
	p.health(ctx)
	p.clock(ctx)
	p.processes(ctx, found)
	p.progress(ctx, found)
	p.permissions(ctx)
	p.strangers(ctx)
	return p.lines
}

// Worst returns the worst level of the lines.
func Worst(lines []Line) Level {
	worst := OK
	for _, l := range lines {
		if l.Level == Bad || worst == OK {
			worst = l.Level
		}
	}
	return worst
}

// MinServer is the oldest nats-server that a fleet works with. The fleet needs schedules with cron, and atomic batches.
const MinServer = "2.14"

// server checks the server of the connection.
func (p *checker) server() {
	v := p.NC.ConnectedServerVersion()
	var major, minor int
	if _, err := fmt.Sscanf(v, "%d.%d", &major, &minor); err != nil {
		p.warn("server", "", "nats-server %s: its version cannot be read", v)
		return
	}
	switch {
	case major < 2 || major == 2 && minor < 12:
		p.bad("server", "run nats-server "+MinServer+" or later", "nats-server %s has neither schedules nor atomic batches: no delayed events, no cron", v)
	case major == 2 && minor < 14:
		p.warn("server", "run nats-server "+MinServer+" or later", "nats-server %s has no cron schedules", v)
	default:
		p.ok("server", "nats-server %s", v)
	}
	if most := p.NC.MaxPayload(); most < 1<<20 {
		p.warn("payload", "set max_payload of nats-server to 1MB", "a message has at most %d bytes, and so an event and a reply in one piece", most)
	} else {
		p.ok("payload", "a message has at most %d bytes", most)
	}
}

// ForOwners says what an owner has instead of commands that need the fleet's user.
const ForOwners = "An owner sets PINWHEEL_OWNER and has 'pinwheel workers ls', 'tail', 'dead ls' and 'send' for its own workers (docs/guides/many-owners.md)"

// account checks JetStream. It returns false when JetStream is missing.
func (p *checker) account(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := MayAsk(ctx, p.NC); err != nil {
		p.bad("permissions", "use the fleet's user. "+ForOwners, "this user may not ask JetStream, as users of owners may not: %v", err)
		return false
	}
	info, err := p.js.AccountInfo(ctx)
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
		errors.Is(err, nats.ErrNoResponders):
		p.bad("jetstream", "start nats-server with JetStream, and enable it for this account; if it was there, see nats-server's log: a full disk may end it. "+
			"If this is the user of an owner, use the fleet's user. "+ForOwners,
			"there is no JetStream for this account")
		return false
	case err != nil:
		p.bad("jetstream", "see that this user may use $JS.API, and that the cluster has a leader", "JetStream does not answer: %v", err)
		return false
	}
	if info.API.Level < 2 {
		p.warn("jetstream", "run nats-server "+MinServer+" or later on every machine of the cluster",
			"API level %d: no schedules, no atomic batches", info.API.Level)
	} else {
		p.ok("jetstream", "API level %d", info.API.Level)
	}
	p.limits(info)
	return true
}

func (p *checker) limits(info *jetstream.AccountInfo) {
	tier := info.Tier
	if t, ok := info.Tiers[fmt.Sprintf("R%d", max(1, p.Replicas))]; ok {
		tier = t
	}
	l, reserve := tier.Limits, int64(0)
	var streams int
	for _, a := range p.Resources {
		if a.Consumer == nil {
			streams++
		}
		if a.Stream != nil && a.Stream.MaxBytes > 0 {
			reserve += a.Stream.MaxBytes
		}
		if a.Bucket != nil && a.Bucket.MaxBytes > 0 {
			reserve += a.Bucket.MaxBytes
		}
		if a.Objects != nil && a.Objects.MaxBytes > 0 {
			reserve += a.Objects.MaxBytes
		}
	}
	if l.MaxStreams > 0 && l.MaxStreams < streams {
		p.bad("limits", "raise the account's limit of streams", "the account may have %d streams, and a fleet has %d", l.MaxStreams,
			streams)
	}
	if l.MaxConsumers > 0 && l.MaxConsumers < 2*events.Lanes {
		p.warn("limits", "raise the account's limit of consumers", "the account may have %d consumers, and a fleet has %d and one for each owner with parked events", l.MaxConsumers,
			events.Lanes)
	}
	if l.MaxStore > 0 && l.MaxStore < reserve {
		p.bad("limits", "raise the account's storage, or lower PINWHEEL_MAX_BYTES, PINWHEEL_WORKERS_MAX_BYTES and PINWHEEL_ASSETS_MAX_BYTES", "the account may store %s, and the fleet's streams reserve %s", size(l.MaxStore),
			size(reserve))
	}
	if l.MaxStore > 0 {
		p.full("disk", "the account's storage", tier.Store, l.MaxStore)
		p.reserved("the account", tier.ReservedStore, l.MaxStore)
	} else {
		p.ok("limits", "storage is limited by the server only; %s stored, %s reserved by all streams", size(int64(tier.Store)), size(int64(tier.ReservedStore)))
	}
}

// reserved reports how much of a storage is reserved for streams. When all is, no stream can be made or grow, such as
// that of an owner's keys, however much room is left.
func (p *checker) reserved(what string, bytes uint64, of int64) {
	part := float64(bytes) / float64(of)
	text := fmt.Sprintf("%s has reserved %s of %s for streams (%.0f%%)", what, size(int64(bytes)), size(of), 100*part)
	const do = "raise max_file_store of nats-server, or max_store of the account, or lower PINWHEEL_MAX_BYTES with 'pinwheel resources apply': " +
		"when all is reserved, owners that need more for keys, objects and caches are answered 503"
	switch {
	case part >= 0.95:
		p.bad("reserved", do, "%s", text)
	case part >= 0.8:
		p.warn("reserved", do, "%s", text)
	default:
		p.ok("reserved", "%s", text)
	}
}

// full reports how full something is.
func (p *checker) full(check, what string, used uint64, of int64) {
	part := float64(used) / float64(of)
	text := fmt.Sprintf("%s: %s of %s (%.0f%%)", what, size(int64(used)), size(of), 100*part)
	switch {
	case part >= 0.95:
		p.bad(check, "make room, or raise the limit: publishers are refused when it is full", "%s", text)
	case part >= 0.8:
		p.warn(check, "see why it fills, or raise the limit", "%s", text)
	default:
		p.ok(check, "%s", text)
	}
}

func size(n int64) string {
	for _, u := range []struct {
		name string
		of   int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.of {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(u.of), u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}
