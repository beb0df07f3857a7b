package supervisor

import "github.com/prometheus/client_golang/prometheus"

// metrics of a Supervisor.
type metrics struct {
	restarts *prometheus.CounterVec
	up       *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_process_restarts_total", Help: "Processes started because the one before had ended or was to be replaced. Not with PINWHEEL_PROCESSES=0.",
		}, []string{"process"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pinwheel_process_up", Help: "1 while the process runs, else 0. Not with PINWHEEL_PROCESSES=0.",
		}, []string{"process"}),
	}
}
