package janitor

import (
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
)

// Lane names a JetStream consumer of a stream.
type Lane struct{ Stream, Consumer string }

// Config says what a Janitor maintains.
type Config struct {
	Anchors  []*Anchor
	Lanes    []Lane
	Replicas int // of every stream
}

// Janitor maintains streams. Make it with New; KeepAnchors and Sweep run until their contexts end.
type Janitor struct {
	cfg   Config
	js    jetstream.JetStream
	log   zerolog.Logger
	soon  chan struct{}
	swept prometheus.Counter
}

// New makes a Janitor. Nothing is asked of NATS yet.
func New(cfg Config, js jetstream.JetStream, log zerolog.Logger) *Janitor {
	return &Janitor{cfg: cfg, js: js, log: log, soon: make(chan struct{}, 1),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_swept_messages_total", Help: "Acked messages that nats-server had not removed.",
		})}
}

// Collectors are the metrics of the janitor.
func (j *Janitor) Collectors() []prometheus.Collector { return []prometheus.Collector{j.swept} }

// SweepSoon makes Sweep run soon: the server may have restarted.
func (j *Janitor) SweepSoon() { jsapi.Signal(j.soon) }
