package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func open(t *testing.T) (*audit.Log, jetstream.JetStream) {
	t.Helper()
	js, err := jetstream.New(natstest.Connect(t, natstest.Start(t)))
	require.NoError(t, err)
	l, err := audit.Open(t.Context(), js, audit.Config{Prefix: "pinwheel", MaxBytes: 2 << 30}, zerolog.Nop())
	require.NoError(t, err)
	return l, js
}

func list(t *testing.T, l *audit.Log, f audit.Filter) (all []audit.Record) {
	t.Helper()
	for r, err := range l.List(t.Context(), f) {
		require.NoError(t, err)
		all = append(all, *r)
	}
	return all
}

// What a process did by itself has a source of its own.
func TestRecordsOfProcesses(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Process, Owner: "acme", Action: "cells.end",
		Request: json.RawMessage(`{}`), Node: "n"}))
	all := list(t, l, audit.Filter{Owner: "acme"})
	require.Len(t, all, 1)
	require.Equal(t, []string{audit.Process, "cells.end", "n"}, []string{all[0].Source, all[0].Action, all[0].Node})
}

func TestRecords(t *testing.T) {
	t.Parallel()
	l, js := open(t)
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.OwnerAPI, Owner: "acme", Action: "dead.purge",
		Request: json.RawMessage(`{"all":true}`), Node: "n", Claims: "me@here"}))
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Command, Owner: "beta", Action: "deploy",
		Request: json.RawMessage(`{}`), User: "fleet of $G"}))
	require.NoError(t,
		l.Write(t.Context(), audit.Record{Source: audit.Control, Action: "drain", Request: json.RawMessage(`{}`)}))
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Control, Owner: "a.b.>", Action: "odd",
		Request: json.RawMessage(`{}`)}), "no subject of another shape")
	all := list(t, l, audit.Filter{})
	require.Len(t, all, 4)
	require.Equal(t, []any{"acme", "door", "dead.purge", `{"all":true}`, "n", "me@here"},
		[]any{all[0].Owner, all[0].Source, all[0].Action, string(all[0].Request), all[0].Node, all[0].Claims})
	require.False(t, all[0].Time.IsZero())
	require.Equal(t, []string{"beta", "", ""}, []string{all[1].Owner, all[2].Owner, all[3].Owner})
	require.Len(t, list(t, l, audit.Filter{Owner: "acme"}), 1)
	require.Len(t, list(t, l, audit.Filter{After: 1}), 3)
	require.Empty(t, list(t, l, audit.Filter{Since: time.Now().Add(time.Hour)}))
	for _, err := range l.List(t.Context(), audit.Filter{Owner: ">"}) {
		require.ErrorContains(t, err, `owner ">"`)
	}

	// What a message says of its owner, source and time does not count.
	_, err := js.Publish(t.Context(), "pinwheel.audit.acme.door", []byte(`{"owner":"beta","source":"control","time":"2001-01-01T00:00:00Z","id":77,"action":"x","request":{}}`))
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "pinwheel.audit.acme.door", []byte(`no record`))
	require.NoError(t, err)
	all = list(t, l, audit.Filter{Owner: "acme"})
	require.Equal(t, []any{"acme", "door", uint64(5)}, []any{all[1].Owner, all[1].Source, all[1].Seq})
	require.NotEqual(t, 2001, all[1].Time.Year())
	require.Equal(t, "?", all[2].Action)

	// Records cannot be removed, and come back empty when the stream is deleted.
	s, err := js.Stream(t.Context(), audit.Stream)
	require.NoError(t, err)
	require.Error(t, s.DeleteMsg(t.Context(), 1))
	require.Error(t, s.Purge(t.Context()))
	require.NoError(t, js.DeleteStream(t.Context(), audit.Stream))
	require.ErrorIs(t, audit.New(js, "pinwheel").Write(t.Context(), audit.Record{Source: audit.Command}),
		audit.ErrNoStream)
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Control, Action: "again"}))
	require.Len(t, list(t, l, audit.Filter{}), 1)
}

// An owner displaces its own records only, and only those of its API.
func TestRecordsOfOthersAreNotDisplaced(t *testing.T) {
	t.Parallel()
	l, js := open(t)
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Command, Owner: "acme", Action: "deploy"}))
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.OwnerAPI, Owner: "beta", Action: "dead.edit"}))
	var last jetstream.PubAckFuture
	for range 5100 {
		var err error
		last, err = js.PublishAsync("pinwheel.audit.acme.door", []byte(`{"action":"dead.edit","request":{}}`),
			jetstream.WithStallWait(2*time.Minute))
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	require.NotNil(t, last)
	s, err := js.Stream(t.Context(), audit.Stream)
	require.NoError(t, err)
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("pinwheel.audit.>"))
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"pinwheel.audit.acme.command": 1, "pinwheel.audit.beta.door": 1,
		"pinwheel.audit.acme.door": 5000}, info.State.Subjects)
}

// However many owners fill the stream, what operators and processes did can be read.
func TestOwnersDoNotDisplaceRecordsOfOperators(t *testing.T) {
	t.Parallel()
	js, err := jetstream.New(natstest.Connect(t, natstest.Start(t)))
	require.NoError(t, err)
	l, err := audit.Open(t.Context(), js, audit.Config{Prefix: "pinwheel", MaxBytes: 1 << 20}, zerolog.Nop())
	require.NoError(t, err)
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Control, Owner: "acme", Action: "owners.set"}))
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Process, Owner: "acme", Action: "cells.end"}))
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Command, Action: "drain"}))
	copied := func(stream string, n uint64) {
		require.Eventually(t, func() bool {
			s, err := js.Stream(t.Context(), stream)
			return err == nil && s.CachedInfo().State.Msgs == n
		}, time.Minute, time.Millisecond, stream)
	}
	copied(audit.StreamOperators, 2)
	copied(audit.StreamProcesses, 1)
	large := []byte(`{"action":"dead.edit","request":{"x":"` + strings.Repeat("x", 4000) + `"}}`)
	for i := range 1000 { // four owners, each below its 5000 records
		_, err := js.PublishAsync(fmt.Sprintf("pinwheel.audit.o%d.door", i%4), large, jetstream.WithStallWait(2*time.Minute))
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	s, err := js.Stream(t.Context(), audit.Stream)
	require.NoError(t, err)
	require.Greater(t, s.CachedInfo().State.FirstSeq, uint64(3), "they are displaced there")
	all := list(t, l, audit.Filter{})
	require.Equal(t, []any{uint64(1), "acme", "control", "owners.set"}, []any{all[0].Seq, all[0].Owner, all[0].Source,
		all[0].Action})
	require.Equal(t, []any{uint64(2), "process", "cells.end"}, []any{all[1].Seq, all[1].Source, all[1].Action})
	require.Equal(t, []any{uint64(3), "command", "drain"}, []any{all[2].Seq, all[2].Source, all[2].Action})
	require.EqualValues(t, s.CachedInfo().State.FirstSeq, all[3].Seq)
	require.Len(t, list(t, l, audit.Filter{After: 1}), len(all)-1)
	require.Len(t, list(t, l, audit.Filter{Owner: "acme"}), 2)

	// A record that is in both streams is listed once.
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Control, Action: "again"}))
	again := list(t, l, audit.Filter{After: all[len(all)-1].Seq})
	require.Len(t, again, 1)
}

// Code of an owner can have its cells ended again and again. Their records displace only their own.
func TestRecordsOfProcessesDisplaceOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	l, js := open(t)
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Process, Owner: "beta", Action: "cells.end"}))
	require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Command, Owner: "beta", Action: "deploy"}))
	for range 150 {
		require.NoError(t, l.Write(t.Context(), audit.Record{Source: audit.Process, Owner: "acme", Action: "cells.end"}))
	}
	of := func(stream string) map[string]uint64 {
		s, err := js.Stream(t.Context(), stream)
		require.NoError(t, err)
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("pinwheel.audit.>"))
		require.NoError(t, err)
		return info.State.Subjects
	}
	want := map[string]uint64{"pinwheel.audit.beta.process": 1, "pinwheel.audit.acme.process": 100}
	commands := map[string]uint64{"pinwheel.audit.beta.command": 1}
	all := func() bool {
		return maps.Equal(want, of(audit.StreamProcesses)) && maps.Equal(commands, of(audit.StreamOperators))
	}
	require.Eventually(t, all, time.Minute, time.Millisecond)
	require.Equal(t, uint64(150), of(audit.Stream)["pinwheel.audit.acme.process"])
}

func TestRequestsWithoutContent(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`{"id":4,"body":"secret","patch":{"a":"secret"},"setHeaders":{"X":["secret"]}}`, `{"id":4,"with":["body","patch","setHeaders"]}`},
		{`{"ID":4,"BODY":"secret"}`, `{"ID":4,"with":["BODY"]}`},
		{``, `{}`}, {`null`, `{}`}, {`[1]`, `{}`},
		{`{"owner":"acme","policy":{"weight":2}}`, `{"owner":"acme","policy":{"weight":2}}`},
	} {
		require.Equal(t, c[1], string(audit.Request([]byte(c[0]))), c[0])
	}
	long := audit.Request([]byte(`{"ids":[` + strings.Repeat("1,", 5000) + `1]}`))
	require.True(t, json.Valid(long))
	require.Less(t, len(long), 1000)
	require.Equal(t, "acme", audit.OwnerOf([]byte(`{"worker":"acme/w"}`)))
	require.Equal(t, "acme", audit.OwnerOf([]byte(`{"owner":"acme"}`)))
	require.Empty(t, audit.OwnerOf([]byte(`{"worker":"w"}`)))
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":4,"body":"secret","ids":[1,2],"\u0000":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := audit.Request(data)
		if !json.Valid(text) {
			t.Fatal(errors.New(string(text)))
		}
		var out map[string]any
		require.NoError(t, json.Unmarshal(text, &out))
		for name := range out {
			require.NotEqual(t, "body", strings.ToLower(name))
			require.NotEqual(t, "patch", strings.ToLower(name))
		}
		_ = audit.OwnerOf(data)
	})
}
