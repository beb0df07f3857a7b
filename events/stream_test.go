package events

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChunkRoundTrip(t *testing.T) {
	t.Parallel()
	before := int64(0)
	for seq, c := range []Chunk{
		{Data: []byte("ab")}, {Data: []byte{}}, {Data: []byte("c"), End: true},
		{Data: []byte{}, Failure: Fail(ReasonException, "line\nbreak: x")},
	} {
		got, err := DecodeChunk(EncodeChunk("id", seq, before+int64(len(c.Data)), c), c.Data, seq, before)
		require.NoError(t, err)
		before += int64(len(c.Data))
		if c.Failure != nil {
			require.Equal(t, "exception: line break: x", got.Failure.Error())
			continue
		}
		require.Equal(t, c, got)
	}
	_, err := DecodeChunk(EncodeChunk("id", 3, 0, Chunk{}), nil, 2, 0)
	require.ErrorContains(t, err, "one was lost")
	_, err = DecodeChunk(EncodeChunk("id", 1, 7, Chunk{End: true}), []byte("x"), 1, 3)
	require.ErrorContains(t, err, "the body has 4 bytes")
}

func TestParseCredit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "1048576": 1 << 20} {
		n, gone, err := ParseCredit([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.False(t, gone)
	}
	_, gone, err := ParseCredit([]byte("cancel"))
	require.NoError(t, err)
	require.True(t, gone)
	for _, text := range []string{"", "-1", "1.5", "9223372036854775808", "x"} {
		_, _, err := ParseCredit([]byte(text))
		require.Error(t, err, text)
	}
}

// Only who waits for a fetch can take its body in chunks.
func TestBodyCredit(t *testing.T) {
	t.Parallel()
	d := Decoder{Subjects: "pinwheel", ReplyPrefixes: []string{"_INBOX."}}
	decode := func(kind string, h Header) (*Event, *Failure) {
		return d.Decode(Origin{Subject: "pinwheel.events.0." + kind + ".a.b"}, h, nil, time.Time{})
	}
	e, f := decode("fetch", Header{"Reply-To": {"_INBOX.1"}, "body-credit": {"1000"}})
	require.Nil(t, f)
	require.EqualValues(t, 1000, e.Credit)
	e, _ = decode("fetch", Header{"Body-Credit": {"1000"}})
	require.Zero(t, e.Credit)
	e, _ = decode("task", Header{"Reply-To": {"_INBOX.1"}, "Body-Credit": {"1000"}})
	require.Zero(t, e.Credit)
	for _, v := range []string{"0", "-1", "x", "", "1e3"} {
		_, f = decode("fetch", Header{"Reply-To": {"_INBOX.1"}, "Body-Credit": {v}})
		require.NotNil(t, f, v)
		require.Contains(t, f.Message, "it is a number of bytes, 1 to 9007199254740992")
	}
}

func TestRequesterIsToldOnce(t *testing.T) {
	t.Parallel()
	n := 0
	var r Requester
	r.OnGone(func() { n++ })
	r.Gone()
	r.Gone()
	require.Equal(t, 1, n)
	r.OnGone(func() { n++ })
	require.Equal(t, 2, n, "who listens late hears it at once")
}

func TestBodyInPartsIsChecked(t *testing.T) {
	t.Parallel()
	d := Decoder{Subjects: "pinwheel", ReplyPrefixes: []string{"_INBOX."}}
	decode := func(kind, body string, h Header) (*Event, *Failure) {
		return d.Decode(Origin{Subject: "pinwheel.events.0." + kind + ".a.b"}, h, []byte(body), time.Time{})
	}
	e, f := decode("fetch", "", Header{"Body-Id": {"x-1"}, "body-parts": {"3"}})
	require.Nil(t, f)
	require.Equal(t, "x-1", e.Parts.ID)
	require.Equal(t, 3, e.Parts.N)
	require.Equal(t, "POST", e.Method)
	for name, h := range map[string]Header{
		"no id":     {"Body-Parts": {"1"}},
		"no parts":  {"Body-Id": {"x"}},
		"bad id":    {"Body-Id": {"x.y"}, "Body-Parts": {"1"}},
		"bad parts": {"Body-Id": {"x"}, "Body-Parts": {"0"}},
		"a GET":     {"Body-Id": {"x"}, "Body-Parts": {"1"}, "Http-Method": {"GET"}},
	} {
		_, f := decode("fetch", "", h)
		require.NotNil(t, f, name)
		require.Equal(t, ReasonMalformed, f.Reason)
	}
	_, f = decode("fetch", "body", Header{"Body-Id": {"x"}, "Body-Parts": {"1"}})
	require.NotNil(t, f, "two bodies")
	_, f = decode("task", "", Header{"Body-Id": {"x"}, "Body-Parts": {"1"}})
	require.NotNil(t, f, "a task")
}
