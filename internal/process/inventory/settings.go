package inventory

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// setting is a variable of the environment that decides a field of what is stored. The fleet has one value of it, in
// JetStream, and its processes work with that one.
type setting struct {
	variable string
	of       func(c *config.Config) any // *config.Bytes, *time.Duration or *int
	stream   string                     // that shows the fleet's value
	consumer string                     // of the stream, when it shows it; "" = the stream does
	has      func(f resources.Finding) int64
}

func settings() []setting {
	stream := func(field func(c jetstream.StreamConfig) int64) func(resources.Finding) int64 {
		return func(f resources.Finding) int64 { return field(f.Stream.Config) }
	}
	bytes := stream(func(c jetstream.StreamConfig) int64 { return c.MaxBytes })
	age := stream(func(c jetstream.StreamConfig) int64 { return int64(c.MaxAge) })
	return []setting{
		{"PINWHEEL_MAX_BYTES", func(c *config.Config) any { return &c.MaxBytes }, events.StreamEvents, "", bytes},
		{"PINWHEEL_REPLICAS", func(c *config.Config) any { return &c.Replicas }, events.StreamEvents, "",
			stream(func(c jetstream.StreamConfig) int64 { return int64(c.Replicas) })},
		{"PINWHEEL_DUPLICATES", func(c *config.Config) any { return &c.Duplicates }, events.StreamEvents, "",
			stream(func(c jetstream.StreamConfig) int64 { return int64(c.Duplicates) })},
		{"PINWHEEL_ACK_WAIT", func(c *config.Config) any { return &c.AckWait }, events.StreamEvents, "lane-0",
			func(f resources.Finding) int64 { return int64(f.Info.Config.AckWait) }},
		{"PINWHEEL_DEAD_LETTER_BYTES", func(c *config.Config) any { return &c.DeadLetterBytes }, events.StreamDead, "",
			bytes},
		{"PINWHEEL_DEAD_LETTER_AGE", func(c *config.Config) any { return &c.DeadLetterAge }, events.StreamDead, "", age},
		{"PINWHEEL_RUNS_BYTES", func(c *config.Config) any { return &c.RunsBytes }, events.StreamRuns, "", bytes},
		{"PINWHEEL_RUNS_AGE", func(c *config.Config) any { return &c.RunsAge }, events.StreamRuns, "", age},
		{"PINWHEEL_RESULT_AGE", func(c *config.Config) any { return &c.ResultAge }, events.StreamResults, "", age},
		{deploy.MaxBytesVariable, func(c *config.Config) any { return &c.WorkersMaxBytes },
			resources.BucketStream(deploy.DefaultBucket), "", bytes},
		{deploy.AssetsMaxBytesVariable, func(c *config.Config) any { return &c.AssetsMaxBytes },
			resources.BucketStream(assetstore.Bucket), "", bytes},
	}
}

// Settings are the settings of a configuration, as the environment has them.
func Settings(c config.Config) map[string]string {
	all := map[string]string{}
	for _, s := range settings() {
		all[s.variable] = shown(s.of(&c))
	}
	return all
}

func shown(value any) string {
	switch v := value.(type) {
	case *config.Bytes:
		return v.String()
	case *time.Duration:
		return v.String()
	case *int:
		return strconv.Itoa(*v)
	}
	panic(fmt.Sprintf("a setting is a %T", value))
}

// ResourcesFor returns a function that does what Resources does, for a process that has cfg with settings of its own.
func ResourcesFor(cfg config.Config, maxPayload int64) func(settings map[string]string) []resources.Resource {
	return func(own map[string]string) []resources.Resource {
		c := cfg
		for _, s := range settings() {
			switch v := s.of(&c).(type) { // what is missing or cannot be read stays
			case *config.Bytes:
				_ = v.Set(own[s.variable])
			case *time.Duration:
				if d, err := time.ParseDuration(own[s.variable]); err == nil {
					*v = d
				}
			case *int:
				if n, err := strconv.Atoi(own[s.variable]); err == nil {
					*v = n
				}
			}
		}
		return Resources(c, maxPayload)
	}
}

// Adopted is cfg with the values that the fleet has. Leases, shares and bounds follow what JetStream has, so a process
// with other values would work against it. It logs what differs. Where JetStream does not answer, or has nothing yet,
// the value of cfg stays.
func Adopted(ctx context.Context, js jetstream.JetStream, cfg config.Config, log zerolog.Logger) config.Config {
	looked := map[string]resources.Finding{}
	for _, s := range settings() {
		f, ok := looked[s.stream+" "+s.consumer]
		if !ok {
			what := resources.Resource{Stream: &jetstream.StreamConfig{Name: s.stream}}
			if s.consumer != "" {
				what = resources.Resource{Consumer: &jetstream.ConsumerConfig{Durable: s.consumer}, Of: s.stream}
			}
			var err error
			if f, err = resources.Look(ctx, js, what); err != nil {
				f.Missing = true
			}
			looked[s.stream+" "+s.consumer] = f
		}
		if f.Missing {
			continue
		}
		next := cfg
		value := s.of(&next)
		wanted, n := shown(s.of(&cfg)), max(0, s.has(f))
		switch v := value.(type) {
		case *config.Bytes:
			*v = config.Bytes(n)
		case *time.Duration:
			*v = time.Duration(n)
		case *int:
			*v = int(n)
		}
		if has := shown(value); has != wanted && next.Validate() == nil {
			log.Warn().Str("variable", s.variable).Str("here", wanted).Str("fleet", has).Str("stream", s.stream).
				Msg("the fleet has another value, and this process works with that one: 'pinwheel resources apply' changes it")
			cfg = next
		}
	}
	return cfg
}

// VariableOf is the variable of the environment that decides a field of a resource, as JetStream names it. "" = none:
// the binary does.
func VariableOf(r resources.Resource, field string) string {
	stream := r.StreamName()
	switch field {
	case "num_replicas":
		return "PINWHEEL_REPLICAS"
	case "ack_wait":
		return "PINWHEEL_ACK_WAIT"
	case "subjects", "subject_transform", "filter_subject":
		return "PINWHEEL_PREFIX"
	case "max_age":
		return map[string]string{events.StreamDead: "PINWHEEL_DEAD_LETTER_AGE",
			events.StreamResults: "PINWHEEL_RESULT_AGE", events.StreamRuns: "PINWHEEL_RUNS_AGE"}[stream]
	case "duplicate_window":
		return map[string]string{
			events.StreamEvents: "PINWHEEL_DUPLICATES", events.StreamParked: "PINWHEEL_ACK_WAIT",
			events.StreamSchedules: "PINWHEEL_ACK_WAIT",
		}[stream]
	case "max_bytes":
		return cmp.Or(map[string]string{
			events.StreamEvents: "PINWHEEL_MAX_BYTES", events.StreamParked: "PINWHEEL_MAX_BYTES",
			events.StreamBodies:  "PINWHEEL_MAX_BYTES",
			events.StreamResults: "PINWHEEL_MAX_BYTES", resources.BucketStream(events.BucketAttempts): "PINWHEEL_MAX_BYTES",
			audit.Stream: "PINWHEEL_MAX_BYTES", audit.StreamOperators: "PINWHEEL_MAX_BYTES",
			audit.StreamProcesses: "PINWHEEL_MAX_BYTES", resources.BucketStream(usage.Bucket): "PINWHEEL_MAX_BYTES",
			events.StreamDead: "PINWHEEL_DEAD_LETTER_BYTES", events.StreamRuns: "PINWHEEL_RUNS_BYTES",
		}[stream], deploy.VariableOf(stream))
	}
	return ""
}
