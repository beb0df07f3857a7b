package deploy

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of a Store and its Watchers.
type metrics struct {
	deploys    *prometheus.CounterVec
	installs   prometheus.Counter
	activation prometheus.Histogram
	unreadable prometheus.Counter
	restarts   prometheus.Counter
	vanished   prometheus.Gauge
}

// newMetrics registers with reg, which may be nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		deploys: f.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_deploys_total", Help: "Deploys by this process, by result: changed, unchanged, refused, error.",
		}, []string{"result"}),
		installs: f.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_worker_installs_total", Help: "Versions of workers that this process installed.",
		}),
		activation: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "pinwheel_worker_activation_seconds",
			Help:    "Time from the storing of a version to its activation in this process, if the clocks of server and process agree.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 9),
		}),
		unreadable: f.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_worker_records_unreadable_total", Help: "Worker records that this process could not read and skipped.",
		}),
		vanished: f.NewGauge(prometheus.GaugeOpts{
			Name: "pinwheel_workers_vanished", Help: "Workers that run here although their records are gone without a removal.",
		}),
		restarts: f.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_worker_watch_restarts_total", Help: "Times that the watch on the worker bucket began again.",
		}),
	}
}
