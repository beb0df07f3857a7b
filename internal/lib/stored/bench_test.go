package stored

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func BenchmarkGet(b *testing.B) {
	srv := natstest.Start(b)
	nc := natstest.Connect(b, srv)
	js, _ := jetstream.New(nc)
	s, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowDirect: true})
	require.NoError(b, err)
	for _, n := range []int{256, 16 << 10, 512 << 10} {
		sub := fmt.Sprint("s.", n)
		_, err := js.PublishMsg(b.Context(), &nats.Msg{Subject: sub, Header: nats.Header{"X-A": {"1"}},
			Data: make([]byte, n)})
		require.NoError(b, err)
		b.Run(fmt.Sprint("direct/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.GetMsg(b.Context(), 1, jetstream.WithGetMsgSubject(sub))
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprint("api/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := Get(b.Context(), nc, "S", Request{Seq: 1, Next: sub})
				require.NoError(b, err)
			}
		})
	}
}
