package deadletter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

// A text is found where the standard library finds it. The few letters make texts that repeat themselves.
func TestTextIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[aAbB\x00]{0,40}`).Draw(t, "s")
		text := rapid.StringMatching(`[aAbB\x00]{1,6}`).Draw(t, "text")
		require.Equal(t, strings.Contains(strings.ToLower(s), strings.ToLower(text)), deadletter.Finder(text)(s))
	})
	for _, c := range []struct {
		s, text string
		want    bool
	}{
		{"Currency EUR", "currency eur", true},
		{"GRÖSSE", "grösse", false}, // only ASCII
		{"größe", "GRö", true},
		{"@[`{", "`", true}, // beside A to Z
		{"@", "`", false},
		{"\xff\xfe", "\xfe", true},
		{"", "a", false},
	} {
		require.Equal(t, c.want, deadletter.Finder(c.text)(c.s), "%q %q", c.s, c.text)
	}
}

// A body is not copied, neither as a whole nor in parts.
func TestTextCostsNoMemory(t *testing.T) {
	find, body := deadletter.Finder(strings.Repeat("a", 999)+"b"), strings.Repeat("A", 1<<16)
	require.Zero(t, testing.AllocsPerRun(20, func() { find(body) })) // a mean, so what others allocate does not count
}

func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{"usual": "currency", "worst": strings.Repeat("a", 999) + "b"} {
		b.Run(name, func(b *testing.B) {
			s, find := strings.Repeat("a", 1<<20), deadletter.Finder(text)
			b.SetBytes(1 << 20)
			for b.Loop() {
				find(s)
			}
		})
	}
}

// A text may be in the message, in the event's ID or in its body, and chooses for everything that takes a Filter.
func TestTextChooses(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i, id := range []string{"order-EUR", "other", "third"} {
		e := jsapitest.Task(uint64(i+1), id, at)
		e.Body = []byte(map[string]string{"other": `{"currency":"eur"}`, "third": `{}`}[id])
		_, err := b.write(e, "exception")
		require.NoError(t, err)
	}
	for text, want := range map[string][]string{"EUR": {"order-EUR", "other"}, "boom": {"order-EUR", "other", "third"},
		`{"CURR`: {"other"}, "none": nil} {
		var got []string
		for d, err := range b.List(t.Context(), deadletter.Filter{Text: text}) {
			require.NoError(t, err)
			got = append(got, d.EventID)
		}
		require.Equal(t, want, got, text)
	}
	counts, err := b.Purge(t.Context(), deadletter.Selection{Filter: deadletter.Filter{Text: "eur"}}, false, nil)
	require.NoError(t, err)
	require.Equal(t, 2, counts.Done)
	require.Equal(t, 1, b.Stored("PINWHEEL_DEAD"))
}
