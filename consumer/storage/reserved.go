package storage

import (
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

// Reservation is how much of its storage NATS has reserved for the streams of the account. When all is reserved, no
// stream can be made or grow, however much room is left.
type Reservation struct {
	bytes, account atomic.Uint64 // account is the limit of the account; 0 = none
	server         atomic.Uint64 // the limit of the server that has the least left; 0 = unknown
}

// SetServerLimit sets how many bytes the server that has the least left may store and reserve. 0 = unknown. It may be
// called from any goroutine.
func (r *Reservation) SetServerLimit(bytes int64) { r.server.Store(uint64(max(0, bytes))) }

// limit is how many bytes may be reserved; 0 = unknown.
func (r *Reservation) limit() uint64 {
	if limit := r.account.Load(); limit > 0 {
		return limit
	}
	return r.server.Load()
}

func (r *Reservation) looked(tier jetstream.Tier) {
	r.bytes.Store(tier.ReservedStore)
	r.account.Store(uint64(max(0, tier.Limits.MaxStore)))
}

// report logs that nearly all is reserved.
func (r *Reservation) report(u *Usage) {
	bytes, limit := r.bytes.Load(), r.limit()
	if limit == 0 || bytes < limit/100*nearlyFull || !u.mayReport("reserved") {
		return
	}
	u.log.Warn().Uint64("bytes", bytes).Uint64("limit", limit).
		Msg("nearly all storage is reserved for streams: when all is, owners that need more for keys, objects and caches are refused; raise max_file_store of nats-server, or max_store of the account")
}

var (
	reservedBytes = prometheus.NewDesc("pinwheel_reserved_bytes", "Bytes that NATS has reserved for the streams of the account, whether they use them or not.", nil, nil)
	reservedLimit = prometheus.NewDesc("pinwheel_reserved_bytes_limit",
		"What pinwheel_reserved_bytes may be: the limit of the account, else of the server. It is missing when neither is known; PINWHEEL_NATS_MONITOR lets processes know that of the server.", nil, nil)
)

func (r *Reservation) describe(to chan<- *prometheus.Desc) {
	to <- reservedBytes
	to <- reservedLimit
}

func (r *Reservation) collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(reservedBytes, prometheus.GaugeValue, float64(r.bytes.Load()))
	if limit := r.limit(); limit > 0 {
		to <- prometheus.MustNewConstMetric(reservedLimit, prometheus.GaugeValue, float64(limit))
	}
}
