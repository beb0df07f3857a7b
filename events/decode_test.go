package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var testDecoder = Decoder{Subjects: DefaultPrefix, ReplyPrefixes: []string{"_INBOX."}}

func stored(kind, owner, worker string) Origin {
	return Origin{Stream: "PINWHEEL_EVENTS", Subject: "pinwheel.events.3." + kind + "." + owner + "." + worker, Seq: 42,
		Deliveries: 1}
}

var storedAt = time.Unix(1_700_000_000, 0)

func TestDecodeComplete(t *testing.T) {
	t.Parallel()
	h := Header{
		"Reply-To": {"_INBOX.a.1"}, "Event-Id": {"e-1"}, "Deadline": {"2026-01-02T15:04:05.123Z"},
		"Worker-Version": {"3-abc"},
		"Http-Method":    {"PUT"}, "Http-Url": {"/a/b?c=d"}, "Http-Header-X-One": {"1", "2"}, "Nats-Msg-Id": {"m"},
		"Mine": {"x"},
	}
	e, f := testDecoder.Decode(stored("fetch", "acme", "hello"), h, []byte("body"), storedAt)
	require.Nil(t, f)
	require.Equal(t, &Event{Kind: Fetch, Owner: "acme", Worker: "hello", ID: "e-1", Version: "3-abc",
		ReplyTo: "_INBOX.a.1", Deadline: time.Date(2026, 1, 2, 15, 4, 5, 123e6, time.UTC),
		Stored: storedAt, Header: h, Body: []byte("body"), Origin: stored("fetch", "acme", "hello"),
		Request: Request{Method: "PUT", URL: "http://hello.acme.pinwheel/a/b?c=d",
			HTTPHeaders: []string{"X-One", "1", "X-One", "2"}}}, e)
	require.Equal(t, "acme/hello", e.Target())

	e, f = testDecoder.Decode(stored("scheduled", "acme", "hello"), Header{"Scheduled-Time": {"8640000000000000"},
		"Cron": {"0 * * * *"}}, nil, storedAt)
	require.Nil(t, f)
	require.Equal(t, int64(8_640_000_000_000_000), e.ScheduledTime)
	require.Equal(t, "0 * * * *", e.Cron)
}

// Where the id of an event comes from, and what a fetch may leave out.
func TestDecodeDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header Header
		body   string
		id     string
		method string
		url    string
	}{
		{nil, "", "42", "GET", "http://hello.acme.pinwheel/"},
		{nil, "x", "42", "POST", "http://hello.acme.pinwheel/"},
		{Header{"Nats-Msg-Id": {"m"}, "Http-Url": {"/"}}, "", "m", "GET", "http://hello.acme.pinwheel/"},
		{Header{"nats-msg-id": {"m"}, "event-id": {"e"}}, "", "e", "GET", "http://hello.acme.pinwheel/"},
		{Header{"Http-Url": {"https://shop.example/x"}, "Http-Method": {"DELETE"}}, "", "42", "DELETE",
			"https://shop.example/x"},
		{Header{"Http-Url": {"//x/y"}}, "", "42", "GET", "http://hello.acme.pinwheel//x/y"},
		{Header{"Http-Url": {"/100%?%"}}, "", "42", "GET", "http://hello.acme.pinwheel/100%?%"},
		{Header{"Event-Id": {""}}, "", "42", "GET", "http://hello.acme.pinwheel/"},
		// A message that tries to look like one of the server's is a user's like any other.
		{Header{"Status": {"409"}, "Description": {"Consumer Deleted"}}, "", "42", "GET", "http://hello.acme.pinwheel/"},
	} {
		e, f := testDecoder.Decode(stored("fetch", "acme", "hello"), c.header, []byte(c.body), storedAt)
		require.Nil(t, f, c.header)
		require.Equal(t, []string{c.id, c.method, c.url}, []string{e.ID, e.Method, e.URL}, c.header)
	}
}

func TestDecodeMalformed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		origin Origin
		header Header
		body   string
		want   string
	}{
		{"other subject", Origin{Subject: "other.events.3.fetch.o.w"}, nil, "", "is not pinwheel.events.KIND.OWNER.WORKER"},
		{"too few tokens", Origin{Subject: "pinwheel.events.3.fetch.o"}, nil, "", "is not pinwheel.events.KIND.OWNER.WORKER"},
		{"too many tokens", Origin{Subject: "pinwheel.events.3.fetch.o.w.x"}, nil, "",
			"is not pinwheel.events.KIND.OWNER.WORKER"},
		{"no lane", Origin{Subject: "pinwheel.events.16.fetch.o.w"}, nil, "", "is not pinwheel.events.KIND.OWNER.WORKER"},
		{"unknown kind", stored("fetsch", "o", "w"), nil, "", `kind "fetsch": it is one of fetch, task, scheduled`},
		{"owner", stored("task", "ö", "w"), nil, "", `owner "ö": a name is`},
		{"worker", stored("task", "o", strings.Repeat("w", 65)), nil, "", "worker"},
		{"reply to JetStream", stored("task", "o", "w"), Header{"Reply-To": {"$JS.API.STREAM.DELETE.X"}}, "",
			"never go to subjects of NATS or Pinwheel"},
		{"reply to system", stored("task", "o", "w"), Header{"Reply-To": {"$SYS.x"}}, "",
			"never go to subjects of NATS or Pinwheel"},
		{"reply to ourselves", stored("task", "o", "w"), Header{"Reply-To": {"pinwheel.events.task.o.w"}}, "",
			"never go to subjects of NATS or Pinwheel"},
		{"reply elsewhere", stored("task", "o", "w"), Header{"Reply-To": {"orders.new"}}, "", "it must begin with _INBOX."},
		{"reply to wildcard", stored("task", "o", "w"), Header{"Reply-To": {"_INBOX.*"}}, "",
			"not a subject that can be published to"},
		{"reply with a space", stored("task", "o", "w"), Header{"Reply-To": {"_INBOX.a b"}}, "",
			"not a subject that can be published to"},
		{"reply with an empty token", stored("task", "o", "w"), Header{"Reply-To": {"_INBOX..a"}}, "",
			"not a subject that can be published to"},
		{"reply with empty", stored("task", "o", "w"), Header{"Reply-To": {""}}, "",
			"not a subject that can be published to"},
		{"reply twice", stored("task", "o", "w"), Header{"Reply-To": {"_INBOX.a", "_INBOX.b"}}, "",
			"header Reply-To does not appear once"},
		{"reply twice by case", stored("task", "o", "w"), Header{"Reply-To": {"_INBOX.a"}, "reply-to": {"_INBOX.b"}}, "",
			"header Reply-To does not appear once"},
		{"long id", stored("task", "o", "w"), Header{"Event-Id": {strings.Repeat("x", 257)}}, "",
			"at most 256 bytes of UTF-8"},
		{"id not UTF-8", stored("task", "o", "w"), Header{"Nats-Msg-Id": {"\xff"}}, "", "at most 256 bytes of UTF-8"},
		{"deadline", stored("task", "o", "w"), Header{"Deadline": {"tomorrow"}}, "", "it is a time in RFC 3339"},
		{"method", stored("fetch", "o", "w"), Header{"Http-Method": {"G T"}}, "", "it is an HTTP method"},
		{"method CONNECT", stored("fetch", "o", "w"), Header{"Http-Method": {"connect"}}, "", "other than CONNECT"},
		{"GET with a body", stored("fetch", "o", "w"), Header{"Http-Method": {"GET"}}, "x",
			"GET cannot carry a body, and this one has 1 bytes"},
		{"URL", stored("fetch", "o", "w"), Header{"Http-Url": {"ftp://x/"}}, "", "absolute http or https URL"},
		{"URL without host", stored("fetch", "o", "w"), Header{"Http-Url": {"http:///x"}}, "", "absolute http or https URL"},
		{"URL with NUL", stored("fetch", "o", "w"), Header{"Http-Url": {"/\x00"}}, "", "absolute http or https URL"},
		{"HTTP header name", stored("fetch", "o", "w"), Header{"Http-Header-": {"x"}}, "",
			"is not the name of an HTTP header"},
		{"HTTP header value", stored("fetch", "o", "w"), Header{"Http-Header-A": {"x\x00"}}, "", "NUL or a line break"},
		{"time", stored("scheduled", "o", "w"), Header{"Scheduled-Time": {"now"}}, "", "milliseconds since the epoch"},
		{"time too late", stored("scheduled", "o", "w"), Header{"Scheduled-Time": {"8640000000000001"}}, "",
			"milliseconds since the epoch"},
		{"time before 1970", stored("scheduled", "o", "w"), Header{"Scheduled-Time": {"-1"}}, "",
			"milliseconds since the epoch"},
		{"JSON", stored("task", "o", "w"), Header{"content-type": {"Application/JSON; charset=utf-8"}}, "{",
			"body is not the JSON"},
		{"+json", stored("task", "o", "w"), Header{"Content-Type": {"application/cloudevents+json"}}, "",
			"body is not the JSON"},
	} {
		t.Run(c.what, func(t *testing.T) {
			e, f := testDecoder.Decode(c.origin, c.header, []byte(c.body), storedAt)
			require.NotNil(t, f)
			require.Equal(t, ReasonMalformed, f.Reason)
			require.Contains(t, f.Message, c.want)
			require.NotNil(t, e)
			require.NotEmpty(t, e.ID)
			require.Equal(t, c.header, e.Header)
		})
	}
}

// What is usable of a malformed event is used, so that its publisher can be told. The id is the publisher's own,
// however its name is spelled; without one it is the message id, and each may stand once.
func TestDecodeIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header Header
		id     string // "" = malformed
	}{
		{Header{"Nats-Msg-Id": {"m"}}, "m"},
		{Header{"nats-msg-id": {"m"}}, "m"},
		{Header{"Nats-Msg-Id": {"m"}, "Event-Id": {"e"}}, "e"},
		{Header{"Nats-Msg-Id": {"m"}, "event-id": {"e"}}, "e"},
		{Header{"Nats-Msg-Id": {"m"}, "EVENT-ID": {""}}, "m"},
		{Header{"Event-Id": {"e"}, "event-id": {"e"}}, ""},
		{Header{"event-id": {"e", "e"}}, ""},
		{Header{"Nats-Msg-Id": {"m"}, "nats-msg-id": {"m"}}, ""},
		{Header{"event-id": {strings.Repeat("e", MaxEventID+1)}, "Nats-Msg-Id": {"m"}}, ""},
	} {
		e, f := testDecoder.Decode(stored("task", "acme", "hello"), c.header, nil, storedAt)
		require.Equal(t, c.id == "", f != nil, "%v: %v", c.header, f)
		if c.id != "" {
			require.Equal(t, c.id, e.ID, c.header)
		}
	}
}

func TestDecodeMalformedKeepsReplyTo(t *testing.T) {
	t.Parallel()
	e, f := testDecoder.Decode(stored("fetch", "o", "w"), Header{"Reply-To": {"_INBOX.a"}, "Http-Url": {"nonsense"}}, nil,
		storedAt)
	require.NotNil(t, f)
	require.Equal(t, "_INBOX.a", e.ReplyTo)
	e, f = testDecoder.Decode(stored("fetch", "o", "w"), Header{"Reply-To": {"$JS.x"}}, nil, storedAt)
	require.NotNil(t, f)
	require.Empty(t, e.ReplyTo)
}

func TestCheckReplyTo(t *testing.T) {
	t.Parallel()
	require.NoError(t, testDecoder.CheckReplyTo("_INBOX.a", "acme"))
	require.EqualError(t, testDecoder.CheckReplyTo("x", "acme"), `reply subject "x": it must begin with _INBOX.`)
}

func TestParseAckSubject(t *testing.T) {
	t.Parallel()
	for subject, ok := range map[string]bool{
		"$JS.ACK.S.C.2.33.4.1700000000000000000.5":              true,
		"$JS.ACK.hub.ACCHASH.S.C.2.33.4.1700000000000000000.5":  true,
		"$JS.ACK._.ACCHASH.S.C.2.33.4.1700000000000000000.5.rx": true,
		"$JS.ACK.S.C.2.33.4.1700000000000000000":                false,
		"$JS.ACK.a.S.C.2.33.4.1700000000000000000.5":            false,
		"$JS.ACK.S.C.0.33.4.1700000000000000000.5":              false,
		"$JS.ACK.S.C.x.33.4.1700000000000000000.5":              false,
		"$JS.ACK.S.C.2.-3.4.1700000000000000000.5":              false,
		"$JS.ACK..C.2.33.4.1700000000000000000.5":               false,
		"$JS.NAK.S.C.2.33.4.1700000000000000000.5":              false,
		"_INBOX.abc":                  false,
		"":                            false,
		strings.Repeat("$JS.ACK.", 9): false,
	} {
		origin, at, pending, err := ParseAckSubject(subject)
		if !ok {
			require.Error(t, err, subject)
			continue
		}
		require.NoError(t, err, subject)
		require.Equal(t, Origin{Stream: "S", Consumer: "C", Seq: 33, Deliveries: 2, AckSubject: subject}, origin)
		require.True(t, at.Equal(storedAt))
		require.Equal(t, uint64(5), pending)
	}
}

func TestUserHeaders(t *testing.T) {
	t.Parallel()
	e := Event{Header: Header{
		"Reply-To": {"_INBOX.a"}, "reply-to": {"x"}, "Nats-Msg-Id": {"1"}, "nats-rollup": {"all"}, "Status": {"409"},
		"Dead-Replays": {"1"}, "X": {"1", "2"}, "traceparent": {"00-x"},
	}}
	got := make(map[string]int)
	e.UserHeaders(func(name, value string) { got[name+"="+value]++ })
	require.Equal(t, map[string]int{"X=1": 1, "X=2": 1, "traceparent=00-x": 1}, got)
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"name":"Ada","items":[` + strings.Repeat(`"x",`, 250) + `1]}`)
	for _, c := range []struct {
		name   string
		origin Origin
		header Header
	}{
		{"task", stored("task", "acme", "hello"), Header{"Reply-To": {"_INBOX.abc.1"}, "Nats-Msg-Id": {"acme:1"}}},
		{"task JSON", stored("task", "acme", "hello"),
			Header{"Reply-To": {"_INBOX.abc.1"}, "Content-Type": {"application/json"}}},
		{"fetch", stored("fetch", "acme", "hello"), Header{
			"Reply-To": {"_INBOX.abc.1"}, "Event-Id": {"e"}, "Deadline": {"2026-01-02T15:04:05.123Z"}, "Http-Url": {"/a?b=c"},
			"Http-Method": {"POST"}, "Http-Header-Content-Type": {"application/json"}, "Http-Header-Accept": {"*/*"},
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, f := testDecoder.Decode(c.origin, c.header, body, storedAt); f != nil {
					b.Fatal(f)
				}
			}
		})
	}
	b.Run("ack subject", func(b *testing.B) {
		b.ReportAllocs()
		subject := fmt.Sprintf("$JS.ACK.PINWHEEL_EVENTS.lane-3.1.%d.%d.1700000000000000000.5", 123456, 123456)
		for b.Loop() {
			if _, _, _, err := ParseAckSubject(subject); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// With the owner in the prefix, nobody's event can name the inbox of another.
func TestReplyPrefixOfTheOwner(t *testing.T) {
	t.Parallel()
	d := Decoder{Subjects: DefaultPrefix, ReplyPrefixes: []string{"_INBOX.{owner}.", "_REPLIES_{owner}."}}
	for subject, want := range map[string]bool{
		"_INBOX.acme.x": true, "_INBOX.acme.x.y": true, "_REPLIES_acme.1": true,
		"_INBOX.acme": false, "_INBOX.acme2.x": false, "_INBOX.beta.x": false, "_INBOX.x": false, "_INBOX.{owner}.x": false,
		"_REPLIES_acme2.1": false,
	} {
		require.Equal(t, want, d.CheckReplyTo(subject, "acme") == nil, subject)
		e, failure := d.Decode(Origin{Subject: "pinwheel.events.3.task.acme.w"}, Header{"Reply-To": {subject}}, nil,
			time.Now())
		require.Equal(t, want, failure == nil, subject)
		require.Equal(t, want, e.ReplyTo != "", subject)
	}
	require.Error(t, d.CheckReplyTo("_INBOX..x", ""), "no owner, no inbox")
	for prefix, want := range map[string]bool{
		"_INBOX.{owner}.": true, "_INBOX_{owner}.": true, "_INBOX.": true, "x": true,
		"_INBOX.{owner}": false, "{owner}{owner}.": false, "": false, "a.*.": false, "$JS.": false, "pinwheel.x": false,
		"a{owner}.{owner}.": false,
	} {
		require.Equal(t, want, CheckReplyPrefix(prefix, DefaultPrefix) == nil, prefix)
	}
}
