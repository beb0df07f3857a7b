package sources_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// The servers decide which sources a worker may be deployed with.
func TestSourcesThatCannotBeConsumed(t *testing.T) {
	t.Parallel()
	conn, err := sources.NewConn(natstest.Connect(t, natstest.Start(t)), "")
	require.NoError(t, err)
	for _, cfg := range []jetstream.StreamConfig{
		{Name: "ORDERS", Subjects: []string{"orders.>"}},
		{Name: "JOBS", Subjects: []string{"jobs.>"}, Retention: jetstream.WorkQueuePolicy},
		{Name: "FOREIGN", Subjects: []string{"pinwheel.events.*.*.*"}},
		{Name: "COPY", Sources: []*jetstream.StreamSource{{Name: "PINWHEEL_DEAD"}}},
		{Name: "MIRROR", Mirror: &jetstream.StreamSource{Name: "KV_PINWHEEL_OWNERS"}},
	} {
		cfg.Storage = jetstream.MemoryStorage
		_, err := conn.JS.CreateStream(t.Context(), cfg)
		require.NoError(t, err, cfg.Name)
	}
	jobs, err := conn.JS.Stream(t.Context(), "JOBS")
	require.NoError(t, err)
	_, err = jobs.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "theirs", FilterSubject: "jobs.mail.*",
		AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	check := sources.Checker{Conns: sources.Conns{"": conn}, Prefix: "pinwheel"}
	all := workers.Start{From: workers.StartAll}
	for _, c := range []struct {
		source workers.Source
		want   string
	}{
		{workers.Source{Stream: "ORDERS"}, ""},
		{workers.Source{Stream: "ORDERS", Subjects: []string{"orders.*.new"}}, ""},
		{workers.Source{Subject: "sensors.*"}, ""},
		{workers.Source{Stream: "JOBS", Subjects: []string{"jobs.print.>"}, Start: all}, ""},
		{workers.Source{Stream: "orders"}, "sources[0] is stream orders: it is not there"},
		{workers.Source{KV: "ORDERS"}, "sources[0] is kv ORDERS: it is not there"},
		{workers.Source{Stream: "ORDERS", Subjects: []string{"bills.>"}}, "none fits bills.>"},
		{workers.Source{Stream: "ORDERS", Connection: "warehouse"}, `the fleet has no connection "warehouse": it has none`},
		{workers.Source{Stream: "JOBS", Start: all}, "its consumer theirs has these subjects"},
		{workers.Source{Stream: "JOBS", Subjects: []string{"jobs.mail.a"}, Start: all}, "its consumer theirs has these"},
		{workers.Source{Stream: "JOBS", Subjects: []string{"jobs.print.>"}}, `say "start": "all"`},
		{workers.Source{Stream: "FOREIGN"}, "the subjects below pinwheel are a fleet's"},
		{workers.Source{Stream: "COPY"}, "it copies PINWHEEL_DEAD"},
		{workers.Source{Stream: "MIRROR"}, "it copies KV_PINWHEEL_OWNERS"},
		{workers.Source{Subject: "pinwheel.logs.*.*"}, "the subjects below pinwheel are a fleet's"},
	} {
		err := check.Check(t.Context(), &workers.Worker{Owner: "acme", Name: "hello",
			Spec: workers.Spec{Sources: []workers.Source{c.source}}})
		if c.want == "" {
			require.NoError(t, err, "%+v", c.source)
			continue
		}
		var fault *workers.SourceFault
		require.True(t, errors.As(err, &fault), "%+v: %v", c.source, err)
		require.ErrorContains(t, err, c.want)
	}
}
