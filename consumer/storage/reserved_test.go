package storage

import (
	"bytes"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// gauge returns the value of a metric, or -1 when there is none.
func gauge(t *testing.T, metrics *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := metrics.Gather()
	require.NoError(t, err)
	for _, m := range all {
		if m.GetName() == name {
			return m.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// A process logs and counts that nearly all storage is reserved, before anything is refused.
func TestNearlyAllIsReserved(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	u := New(Config{Prefix: events.DefaultPrefix, MaxBytes: 8 << 20, Replicas: 1}, nil, nil, zerolog.New(&log))
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(u)
	look := func(bytes uint64) {
		u.Reserved.looked(jetstream.Tier{ReservedStore: bytes, Limits: jetstream.AccountLimits{MaxStore: -1}})
		u.Reserved.report(u)
	}
	look(79 << 20)
	require.Empty(t, log.String())
	require.EqualValues(t, 79<<20, gauge(t, metrics, "pinwheel_reserved_bytes"))
	require.EqualValues(t, -1, gauge(t, metrics, "pinwheel_reserved_bytes_limit"),
		"neither the account nor a server told a limit")
	u.Reserved.SetServerLimit(100 << 20)
	look(79 << 20)
	require.Empty(t, log.String())
	require.EqualValues(t, 100<<20, gauge(t, metrics, "pinwheel_reserved_bytes_limit"))
	look(81 << 20)
	require.Contains(t, log.String(), "nearly all storage is reserved for streams")
	require.EqualValues(t, 81<<20, gauge(t, metrics, "pinwheel_reserved_bytes"))
	told := log.Len()
	look(82 << 20)
	require.Equal(t, told, log.Len(), "once a minute")
}
