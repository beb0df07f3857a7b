package console_test

import (
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/console"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// The page of an owner says what the fleet has for owners whose policy names no cell.
func TestCellsOfTheFleet(t *testing.T) {
	t.Parallel()
	f := startFleet(t, func(c *config.Config) { c.Cell = "guests" })
	p := newPerson(t, startConsole(t, f), operateToken)
	page := p.page("/owners/acme")
	require.Contains(t, page, "<code>PINWHEEL_CELL=guests</code>")
	require.Contains(t, page, `The workers run in the cell <a class="id" href="/cells">guests</a>`)
	p.does("/owners/acme", "/owners/acme", url.Values{"policy": {`{"cell": "shared"}`}})
	require.Eventually(t, func() bool {
		return strings.Contains(html.UnescapeString(p.page("/owners")), `title="cell shared"`)
	}, patience, 10*time.Millisecond)
	require.NotContains(t, p.page("/owners/acme"), "The workers run in the cell")
}

// Where processes are shown, their cells are, with what they use and what confines them.
func TestCellsAreShown(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	p := newPerson(t, startConsole(t, f), operateToken)
	require.Contains(t, p.page("/cells"), "No cell runs.")
	require.NotContains(t, p.page("/"), `href="/cells"`)
	require.Contains(t, p.page("/isolates"), `href="/cells"`)
	deployed(t, f, "w", `export default { task() { return 1; } }`)
	p.does("/owners/acme", "/owners/acme", url.Values{"policy": {`{"cell": "own"}`}})
	require.Eventually(t, func() bool {
		f.Pinwheel("send", "task", "acme/w", "--data", "1")
		return strings.Contains(p.page("/cells"),
			`<td class="id">own:acme</td><td class="wrap"><a href="/owners/acme">acme</a></td>`)
	}, patience, 10*time.Millisecond)
	require.Contains(t, p.page("/owners/acme"), `<a class="id" href="/cells">own:acme</a>`)
	require.Eventually(t, func() bool { return strings.Contains(p.page("/"), `<a href="/cells">Cells</a>`) }, patience,
		10*time.Millisecond)
	top := f.Pinwheel("top", "--count", "1", "--interval", "200ms")
	require.Contains(t, top.Out, "CELLS  THEIR MEMORY")
}

// A cell that was broken into may send any text: it stays text.
func TestCellsThatLieAreShown(t *testing.T) {
	t.Parallel()
	const evil = `<script>hurt()</script>"'><img src=x onerror=hurt()>`
	f := startFleet(t)
	pool := control.Pool{
		Member: control.Member{ID: "1", Node: "n"},
		Cells: []control.PoolCell{{
			Class: "guests", Owners: []string{"acme", "beta"}, More: 1500,
			Threads: 3, Attempts: 7, Bytes: 5 << 20, Began: time.Now(), Starts: 12,
			Unconfined: []string{"files: " + evil},
		}},
		CellAccount: control.CellAccount{
			Confine: "on", Most: 2, Starts: 15,
			Probed: true, Unconfined: []string{"files: " + evil}, Fault: evil,
			Waiting: []string{"own:gamma"}, MoreWaiting: 4,
			Ends: []control.CellEnd{
				{At: time.Now(), How: "died", Class: "guests", Why: "signal: killed"},
				{At: time.Now(), How: "lie", Class: "own:delta", Owners: []string{"delta"}, Why: evil},
				{At: time.Now(), How: "start", Class: "own:delta", Why: "no memory"},
			},
		},
	}
	answer, err := json.Marshal(pool)
	require.NoError(t, err)
	sub, err := f.NC.Subscribe("other.control.pool", func(m *nats.Msg) { _ = m.Respond(answer) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	p := newPerson(t, startConsole(t, f, func(c *console.Config) { c.Prefix = "other" }), viewToken)
	page := p.page("/cells")
	require.NotContains(t, page, "<script>hurt")
	require.NotContains(t, page, "<img src=x")
	for _, want := range []string{
		`<a href="/owners/beta">beta</a> and 1500 more`, `<td class="n">7</td><td class="n">5.0 MiB</td>`, `<td class="n">12</td>`,
		html.EscapeString(evil), `There is no room for <span class="id text">own:gamma</span> and 4 more`,
		`1 sent what no cell sends: <a href="/audit?what=cells.end">Audit</a>`, `<span class="badge bad">sent what none sends</span>`,
		`<a href="/owners/delta">delta</a>`, `<span class="badge warn">died</span>`, `<span class="badge warn">in part</span>`,
		`3<small> in the last hour</small>`, "of 2 at once · 15 started",
	} {
		require.Contains(t, page, want)
	}
}

// What a process has done by itself is in the audit, and nobody else's deed.
func TestAuditOfWhatAProcessDid(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	require.NoError(t, audit.New(js, events.Subjects(f.Config.Prefix)).Write(t.Context(), audit.Record{
		Source: audit.Process, Owner: "acme", Action: "cells.end", Node: "n",
		Request: json.RawMessage(`{"cell": "own:acme", "owners": ["acme"], "sent": "a frame <b>"}`),
	}))
	page := newPerson(t, startConsole(t, f), viewToken).page("/audit?what=cells.end")
	require.Contains(t, page, "1 change, the newest first")
	require.Regexp(t, `(?s)<b>process n</b>\s+ended a cell of\s+<a href="/owners/acme">acme</a>, `+
		`<span class="text">cell own:acme, owners acme, because of what it sent: a frame &lt;b&gt;</span>`, page)
	require.Contains(t, page, `<span class="badge">fleet</span>`)
	require.NotContains(t, page, "Somebody")

	require.Regexp(t, `acme +cells.end +the fleet +process n +\{"cell":"own:acme","owners":\["acme"\]`,
		f.Pinwheel("audit", "acme").Out)
}
