package isolates

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/ask"
)

// ignored returns all code points that UTS 46 ignores.
func ignored() (list []string) {
	for r := rune(0x80); r <= 0x10ffff; r++ {
		if r >= 0xd800 && r <= 0xdfff {
			continue
		}
		if ask.DomainToASCII("a"+string(r)+"b") == "ab" {
			list = append(list, string(r))
		}
	}
	return list
}

// A long domain is a host if it can be one without its ignored code points.
func TestLongDomains(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	list := ignored()
	require.Greater(t, len(list), 250)
	payload, err := json.Marshal(list)
	require.NoError(t, err)
	w := worker("w", `export default { task: event => {
		const wrong = [], host = "xn--9caa.x"; // éé.x
		for (const c of event.payload) {
			const long = c.repeat(1100);
			if (new URL("http://é" + long + "é.x").host !== host) wrong.push(c.codePointAt(0).toString(16));
			// Its neighbours are not ignored, or are in the list themselves.
			for (const n of [c.codePointAt(0) - 1, c.codePointAt(0) + 1]) {
				const other = String.fromCodePoint(n), parse = (text) => URL.parse("http://é" + text + "é.x")?.host ?? null;
				if (parse(other) !== parse(other + long)) wrong.push(n.toString(16));
			}
		}
		const parse = (text) => URL.parse("http://" + text + "/")?.host.length ?? 0;
		return { wrong, composed: parse("a\u0301".repeat(250)), shrunk: parse("%C2%AD".repeat(20000) + "é"), ascii: parse("a".repeat(60000)),
			letters: parse("é".repeat(60000)), puny: parse("xn--" + "a".repeat(60000)), labels: parse("é.".repeat(30000)) };
	} }`)
	w.Limits.CPU = workers.Millis(time.Minute)
	o := b.run(w, task(string(payload)))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `{"success": true, "data": {"wrong": [], "composed": 256, "shrunk": 7, "ascii": 60000, "letters": 0, "puny": 60004, "labels": 0}}`, string(o.reply.Body))
}

// Go's work for a handler that maps long domains, too long or just short enough, counts as the handler's CPU time, and
// the limit ends it.
func TestDomainsAreWithinTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, host := range []string{
		`"é".repeat(60000)`,
		`Array.from({ length: 1024 }, (_, i) => String.fromCodePoint(0x4e00 + i)).join("")`,
		`Array.from({ length: 512 }, (_, i) => String.fromCodePoint(0x4e00 + i) + ".").join("") + "\u00ad".repeat(60000)`,
		`"xn--" + "a".repeat(1020)`,
	} {
		w := worker("w", `export default { task() { const host = `+host+`; for (;;) URL.canParse("http://" + host) } }`)
		w.Limits = short
		o := b.run(w, task("null"))
		require.NotNil(t, o.end.Failure, host)
		require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
		require.Zero(t, b.pool.losses.ranAway.Load(), "V8 let it go at once: %s", host)
	}
}

func TestDomainThatIsTooLongIsNotMapped(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, ask.DomainToASCII(strings.Repeat("é", ask.MaxDomain)))
	require.Empty(t, ask.DomainToASCII(strings.Repeat("é", ask.MaxDomain+1)))
}
