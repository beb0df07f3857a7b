package events

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What an encoder made before is in nothing that it makes later, and it keeps no more than its bounds.
func TestReplyEncoderIsUsedAgain(t *testing.T) {
	t.Parallel()
	var x ReplyEncoder
	rapid.Check(t, func(t *rapid.T) {
		r := &Reply{
			Status: rapid.SampledFrom([]int{0, 200, 404}).Draw(t, "status"), EventID: rapid.String().Draw(t, "id"),
			Attempt: rapid.IntRange(0, 300).Draw(t, "attempt"), Duration: time.Duration(rapid.IntRange(0, 1<<40).Draw(t, "ns")),
			Version:       rapid.SampledFrom([]string{"", "1-a"}).Draw(t, "version"),
			CreditSubject: rapid.SampledFrom([]string{"", "c"}).Draw(t, "credit"),
		}
		if rapid.Bool().Draw(t, "failed") {
			r.Failure = Fail(ReasonException, "a\nb")
		}
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,70}|set-cookie|content-type`), 0, 80).
			Draw(t, "names") {
			r.Headers = append(r.Headers, name, rapid.String().Draw(t, "value"))
		}
		require.Equal(t, r.Encode(), maps.Clone(x.Encode(r)))
		require.LessOrEqual(t, len(x.names), keptNames)
	})
}

// The headers of an ordinary reply cost no more than the text of their numbers.
func TestReplyEncoderAllocates(t *testing.T) {
	var x ReplyEncoder
	r := &Reply{Status: 200, EventID: "12345", Attempt: 1, Version: "1-a", Duration: time.Millisecond,
		Headers: []string{"content-type", "application/json"}}
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { x.Encode(r) }), 1.0)
}
