package consumer

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
)

// StreamSchedules has what is to run at a time: events that wait, events that are due, and the last ticks of schedules. Who may
// publish there may run anything at any time and delete all of it, by headers: so only the fleet may.
const StreamSchedules = "PINWHEEL_SCHEDULES"

// schedulesStream is its configuration. JetStream lets no stream with schedules refuse what is new, so it has no size of its
// own: it ends where the account's storage does.
func schedulesStream(cfg Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: StreamSchedules, Description: "What is to run at a time", Subjects: []string{cfg.Prefix.AllSchedules()},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas, Duplicates: cfg.movedWindow(), AllowDirect: true,
		AllowMsgSchedules: true, AllowRollup: true, AllowAtomicPublish: true, AllowMsgTTL: true,
	}
}

// movedWindow is how long JetStream remembers what was put off. A process that dies between that and the ack leaves both; the
// one that gets the event then puts it off again within this time, which makes no difference.
func (c Config) movedWindow() time.Duration { return max(5*time.Minute, 4*c.AckWait) }

// scheduleAssets are the stream and the consumers of events that are due.
func scheduleAssets(cfg Config) []assets.Asset {
	s := schedulesStream(cfg)
	list := []assets.Asset{{Stream: &s}}
	for lane := range events.DueLanes {
		c := laneConsumer(cfg, 0)
		c.Durable, c.FilterSubject = dueName(lane), cfg.Prefix.DueLane(lane)
		list = append(list, assets.Asset{Consumer: &c, Of: StreamSchedules})
	}
	return list
}

func dueName(lane int) string { return "due-" + strconv.Itoa(lane) }

// dueLanes are the puller's lanes for events that are due. An owner has one of them, and its events that run for the second time
// or more are never parked: so none takes more than its part of the window.
func dueLanes(cfg Config, reserve int) []*lane {
	var lanes []*lane
	for i := range events.DueLanes {
		l := newLane(StreamSchedules, dueName(i), reserve)
		l.most = max(reserve, cfg.Window/events.DueLanes)
		lanes = append(lanes, l)
	}
	return lanes
}
