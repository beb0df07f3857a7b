package cells

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are counted by many goroutines, and become Prometheus metrics when they are collected.
type metrics struct {
	pools   *Pools
	dropped atomic.Int64 // lines of output

	mu   sync.Mutex
	ends map[string]uint64
	past
}

func newMetrics(p *Pools) *metrics {
	return &metrics{pools: p, ends: map[string]uint64{}, past: past{bad: map[string][]End{}}}
}

// ended counts the end of a cell.
func (m *metrics) ended(how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[how]++
}

// ways are how cells end.
var ways = []string{"idle", "replaced", "start", "died", "memory", "lie"}

var (
	descCells = prometheus.NewDesc("pinwheel_cells", "Cells that run.", nil, nil)
	descEnds  = prometheus.NewDesc("pinwheel_cell_ends_total",
		"Cells that ended: idle (they had nothing to run), replaced (V8 has lost threads, or an owner has left), died, memory (they used more than they may), lie (they sent what no cell sends), or start (they did not start).",
		[]string{"how"}, nil)
	descStarts = prometheus.NewDesc("pinwheel_cell_starts_total", "Cells that have started.", nil, nil)
	descBytes  = prometheus.NewDesc("pinwheel_cell_bytes",
		"Memory of all cells that no file backs, as far as the process may read it.", nil, nil)
	descWaiting = prometheus.NewDesc("pinwheel_cell_waiting_classes",
		"Cells that are wanted, and for which there is no room (PINWHEEL_MAX_CELLS, PINWHEEL_HEAP_MAX).", nil, nil)
	descOwners = prometheus.NewDesc("pinwheel_cell_waiting_owners",
		"Owners with events that wait because there is no room for their cell (PINWHEEL_MAX_CELLS, PINWHEEL_HEAP_MAX).", nil, nil)
	descConfined = prometheus.NewDesc("pinwheel_cell_confined",
		"1 if cells are confined in that part, 0 if the system refuses it or PINWHEEL_CELL_CONFINE is off. Known when a cell is wanted.",
		[]string{"part"}, nil)
	descDropped = prometheus.NewDesc("pinwheel_cell_dropped_lines_total",
		"Lines of output that were dropped because a cell wrote too many.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descCells, descEnds, descDropped, descStarts, descBytes, descWaiting, descOwners, descConfined,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
	}
	m.pools.mu.Lock()
	n := m.pools.cells
	m.pools.mu.Unlock()
	gauge(descCells, float64(n))
	var bytes int64
	m.pools.each(func(c *cell) { bytes += privateBytes(c.process.PID) })
	gauge(descBytes, float64(bytes))
	gauge(descWaiting, float64(len(m.pools.waiting(time.Now()))))
	gauge(descOwners, float64(m.pools.waitingOwners()))
	a := m.pools.Account()
	for part, has := range a.parts() {
		gauge(descConfined, map[bool]float64{true: 1}[has], part)
	}
	ch <- prometheus.MustNewConstMetric(descStarts, prometheus.CounterValue, float64(a.Starts))
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(m.dropped.Load()))
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, how := range ways {
		ch <- prometheus.MustNewConstMetric(descEnds, prometheus.CounterValue, float64(m.ends[how]), how)
	}
}
