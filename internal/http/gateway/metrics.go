package gateway

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of all requests. No label has an owner: there may be any number of them.
type metrics struct {
	requests [6]prometheus.Counter // by the first digit of the status
	vector   *prometheus.CounterVec
	duration prometheus.Histogram
	running  prometheus.Gauge
	open     prometheus.Gauge
	closed   *prometheus.CounterVec
	sockets  prometheus.Gauge
	in, out  prometheus.Counter

	mu    sync.Mutex
	conns int
	none  chan struct{} // closed while there are no connections
}

func newMetrics() *metrics {
	m := &metrics{
		vector: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_http_requests_total", Help: "HTTP requests answered, by class of the status. 4xx includes requests whose client went before.",
		}, []string{"status"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pinwheel_http_request_duration_seconds", Help: "Time from the headers of an HTTP request to the end of its response.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60},
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pinwheel_http_requests_running",
			Help: "HTTP requests under way."}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pinwheel_http_connections",
			Help: "Open connections of HTTP clients."}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_http_connections_closed_total",
			Help: "Connections of HTTP clients closed for lack of room: new ones of a client that has its share (share), and idle ones (idle).",
		}, []string{"why"}),
		sockets: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pinwheel_http_websockets",
			Help: "Open WebSockets of HTTP clients."}),
		in: prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_http_received_bytes_total",
			Help: "Bytes of HTTP request bodies."}),
		out: prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_http_sent_bytes_total",
			Help: "Bytes of HTTP response bodies."}),
		none: make(chan struct{}),
	}
	close(m.none)
	for i := 1; i < len(m.requests); i++ {
		m.requests[i] = m.vector.WithLabelValues(strconv.Itoa(i) + "xx")
	}
	return m
}

func (m *metrics) register(reg prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.vector, m.duration, m.running, m.open, m.closed, m.sockets, m.in, m.out} {
		if err := reg.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) record(status int, took time.Duration, in, out int64) {
	m.running.Dec()
	m.requests[status/100].Inc()
	m.duration.Observe(took.Seconds())
	m.in.Add(float64(in))
	m.out.Add(float64(out))
}

// connection counts connections. It is the ConnState of the server.
func (m *metrics) connection(_ net.Conn, state http.ConnState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch state {
	case http.StateNew:
		if m.conns++; m.conns == 1 {
			m.none = make(chan struct{})
		}
	case http.StateClosed, http.StateHijacked:
		if m.conns--; m.conns == 0 {
			close(m.none)
		}
	default:
		return
	}
	m.open.Set(float64(m.conns))
}

// noConnections is closed when there is no connection.
func (m *metrics) noConnections() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.none
}
