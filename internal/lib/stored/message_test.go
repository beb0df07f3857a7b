package stored_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// forged are header blocks of publishers that imitate JetStream's headers. The last ones end before the server adds its
// own, or are not valid blocks.
var forged = []string{
	"NATS/1.0\r\nNats-Stream: T\r\nNats-Subject: s.victim\r\nNats-Sequence: 1\r\nNats-Time-Stamp: 2001-01-01T00:00:00Z\r\n\r\n",
	"NATS/1.0\r\nNats-Sequence: 1\r\nNats-Sequence: 2\r\nNats-Last-Sequence: 1\r\nNats-Num-Pending: 0\r\n\r\n",
	"NATS/1.0\r\nnats-sequence: 1\r\nNATS-SUBJECT: s.victim\r\n\r\n",
	"NATS/1.0\r\nNats-Sequence: 0\r\nNats-Subject: \r\nNats-Time-Stamp: never\r\n\r\n",
	"NATS/1.0\r\nNats-Sequence: 18446744073709551615\r\n\r\n",
	"NATS/1.0 404 Message Not Found\r\n\r\n",
	"NATS/1.0\r\nStatus: 404\r\nDescription: Message Not Found\r\n\r\n",
	"NATS/1.0\r\nStatus: 503\r\n\r\n",
	"NATS/1.0\r\nNats-Stream: T\r\nNats-Subject: s.victim\r\nNats-Sequence: 1\r\nNats-Time-Stamp: 2001-01-01T00:00:00Z\r\n\r\nX: y\r\n\r\n",
	"NATS/1.0\r\n\r\n\r\n\r\n",
	"no headers at all",
}

// A publisher may write any headers: subject, sequence and time are those of the server, and each message is seen
// once.
func TestForgedHeadersSayNothing(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowDirect: true})
	require.NoError(t, err)
	began := time.Now().Add(-time.Minute)
	_, err = js.Publish(t.Context(), "s.victim", []byte("victim's"))
	require.NoError(t, err)
	for _, header := range forged {
		natstest.PublishRaw(t, srv.URL(), "s.forger", header, "")
	}
	read := 0
	for m, err := range stored.All(t.Context(), nc, "S", "s.forger", 1) {
		require.NoError(t, err)
		read++
		require.Equal(t, []any{"s.forger", uint64(read + 1)}, []any{m.Subject, m.Sequence})
		require.Less(t, began, m.Time)
		same, err := stored.Get(t.Context(), nc, "S", stored.Request{Seq: m.Sequence})
		require.NoError(t, err)
		require.Equal(t, m, same)
		last, err := stored.Get(t.Context(), nc, "S", stored.Request{Last: "s.*"})
		require.NoError(t, err)
		require.EqualValues(t, len(forged)+1, last.Sequence)
	}
	require.Equal(t, len(forged), read)
	scanned := 0
	for m, err := range stored.Scan(t.Context(), nc, "S", "s.forger", 1) {
		require.NoError(t, err)
		scanned++
		same, err := stored.Get(t.Context(), nc, "S", stored.Request{Seq: m.Sequence})
		require.NoError(t, err)
		require.Equal(t, []any{"s.forger", uint64(scanned + 1), same.Time.UTC()}, []any{m.Subject, m.Sequence, m.Time.UTC()})
		require.Empty(t, m.Data)
	}
	require.Equal(t, len(forged), scanned)

	// This is the control: the client library believes the forged headers.
	s, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	m, err := s.GetMsg(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []any{"s.victim", uint64(1)}, []any{m.Subject, m.Sequence})
}

func TestNoSuchMessage(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = stored.Get(t.Context(), nc, "S", stored.Request{Seq: 1})
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowDirect: true})
	require.NoError(t, err)
	for _, r := range []stored.Request{{Seq: 1}, {Last: "s.a"}, {Seq: 1, Next: "s.>"}} {
		_, err = stored.Get(t.Context(), nc, "S", r)
		require.ErrorIs(t, err, stored.ErrNone)
	}
	_, err = stored.LastData(t.Context(), nc, "S", "s.a")
	require.ErrorIs(t, err, stored.ErrNone)
	for range stored.All(t.Context(), nc, "S", "s.>", 1) {
		t.Fatal("there is nothing")
	}
}

func TestLastData(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowDirect: true})
	require.NoError(t, err)
	for _, m := range []*nats.Msg{
		{Data: []byte("bytes")},
		{},
		{Header: nats.Header{"Status": {"404"}, "Description": {"Message Not Found"}}},
		{Header: nats.Header{"Status": {"500"}}, Data: []byte("bytes")},
	} {
		m.Subject = "s.a"
		_, err := js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
		data, err := stored.LastData(t.Context(), nc, "S", "s.a")
		require.NoError(t, err)
		require.Equal(t, string(m.Data), string(data))
	}
}

func FuzzParse(f *testing.F) {
	for _, header := range forged {
		answer, _ := json.Marshal(map[string]any{"message": map[string]any{"seq": 7, "subject": "s.a", "hdrs": []byte(header),
			"data": []byte("x"), "time": time.Unix(1, 0)}})
		f.Add(answer)
	}
	f.Add([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		m, err := stored.Parse(answer)
		require.Equal(t, err == nil, m != nil)
	})
}
