package spawn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// work is what handlers do: it has V8 compile, optimize, collect on several threads, and ask the system.
var work = map[string]string{
	"optimized": `let s = 0; for (let i = 0; i < 5e6; i++) s = (s + i * 3) % 1000003; return s > 0`,
	"garbage":   `let all = []; for (let i = 0; i < 1e6; i++) { all.push({ i, text: "t" + i }); if (i % 5e4 == 0) all = [] } return true`,
	"sort":      `return Array.from({ length: 2e4 }, (_, i) => (i * 7919) % 100003).sort((a, b) => a - b)[0] === 0`,
	"regexp":    `return "a".repeat(1e5).replace(/(a)(?=a)/g, "b").length === 1e5`,
	"json":      `return JSON.parse(JSON.stringify(Array(5e3).fill({ a: [1, 2, { b: "x" }] }))).length === 5e3`,
	"zones":     `return new Date(0).toLocaleString("de-DE", { timeZone: "Asia/Tokyo" }).startsWith("1.1.1970, 09:00")`,
	"here":      `return new Date(0).getTimezoneOffset() === 0 && new Intl.NumberFormat("en-IN").format(1e7) === "1,00,00,000"`,
	"random":    `return new Set(Array.from({ length: 99 }, () => crypto.randomUUID())).size === 99`,
	"digest":    `return (await crypto.subtle.digest("SHA-256", new Uint8Array(1e6))).byteLength === 32`,
	"sign": `const k = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
		const s = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, k.privateKey, new Uint8Array(9));
		return crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, k.publicKey, s, new Uint8Array(9))`,
	"gzip": `const zip = new Blob(["x".repeat(1e6)]).stream().pipeThrough(new CompressionStream("gzip"));
		return (await new Response(zip.pipeThrough(new DecompressionStream("gzip"))).text()).length === 1e6`,
	"timers": `const t = Date.now(); await new Promise((f) => setTimeout(f, 20)); return Date.now() - t >= 19`,
	"heap": `const all = []; for (let i = 0; i < 190; i++) all.push(new Array(1 << 17).fill(i));
		return all.every((one, i) => one[i] === i)`,
	"buffers": `let n = 0; for (let i = 0; i < 30; i++) n += new Uint8Array(4e6).fill(1)[i]; return n === 30`,
	"text":    `return new TextDecoder("shift_jis").decode(new Uint8Array([0x83, 0x41])) === "\u30a2"`,
	"refused": `try { await fetch("https://pinwheel.invalid/") } catch (e) { return true } return false`,
}

// pool is the Source and the Host of a pool in a cell.
type pool struct {
	*isolates.Checker // what it does not say itself
	mu                sync.Mutex
	next              []*lifecycle.Attempt
	failed            []string
	left              sync.WaitGroup
}

func (p *pool) Next(_, free int) []*lifecycle.Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(free, len(p.next))
	batch := p.next[:n:n]
	p.next = p.next[n:]
	return batch
}

func (p *pool) Report(_ int, reports []lifecycle.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range reports {
		if r.Reply != nil && string(r.Reply.Body) != `{"success":true,"data":true}` {
			p.failed = append(p.failed, fmt.Sprintf("%s: %s", r.Attempt.Worker.Name, r.Reply.Body))
		}
		if r.End == nil {
			continue
		}
		if r.End.Failure != nil {
			p.failed = append(p.failed, fmt.Sprintf("%s: %v", r.Attempt.Worker.Name, r.End.Failure))
		}
		p.left.Done()
	}
}

func (p *pool) Log(events.LogLine) {}

func (p *pool) Enqueue(context.Context, string, string, []isolates.Message) error {
	return errors.New("there are no queues")
}

func (p *pool) Call(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
	return lifecycle.Answer{}, errors.New("there are no bindings")
}

// runJavaScript runs all work some times, on several threads, whose heaps may have so many MiB together. It says what
// failed.
func runJavaScript(heapMB string) string {
	const threads, times = 4, 2
	p := &pool{Checker: &isolates.Checker{}}
	cfg := isolates.DefaultConfig(threads)
	cfg.Background = 2
	var err error
	var v8 *isolates.Pool
	if cfg.HeapMB, err = strconv.Atoi(heapMB); err == nil {
		cfg.OwnerHeapMB = cfg.HeapMB // there is one owner
		v8, err = isolates.New(cfg, p, p)
	}
	if err == nil {
		err = v8.Open()
	}
	if err != nil {
		return err.Error()
	}
	long := workers.Limits{CPU: workers.Millis(time.Minute), Wall: workers.Millis(patience)}
	for mode := range workers.Modes {
		for name, code := range work {
			w := &workers.Worker{Owner: "acme", Name: name, Version: "1-test", Number: 1,
				Hash: fmt.Sprint(name, mode), Code: "export default { async task() { " + code + " } }", File: "w.js",
				Spec: workers.Spec{Mode: workers.Modes[mode], Limits: long}}
			for n := range times {
				p.left.Add(1)
				p.mu.Lock()
				p.next = append(p.next, &lifecycle.Attempt{Worker: w, Number: 1, Event: &lifecycle.Delivery{
					Event: events.Event{ID: fmt.Sprint(name, mode, n), Kind: events.Task, Owner: "acme", Worker: name},
					Runs:  events.Runs{Attempt: 1},
				}})
				p.mu.Unlock()
			}
		}
	}
	for i := range threads + cfg.Background {
		v8.Wake(i)
	}
	p.left.Wait()
	v8.Close()
	text, err := json.Marshal(p.failed)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(text), "\n", " ")
}

// V8, with its compilers and its collector, and what Go does for handlers, works in a cell as outside, also while the
// heaps are as large as they may be: the bound of the cell's memory leaves room for it.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	for name, s := range spawners(t, Starter{Executable: program(t), ConfineCells: true, HeapBytes: 1 << 30}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, s)
			require.Empty(t, p.Refused())
			require.Equal(t, "null", ask(t, p, "javascript 1024"))
		})
	}
}
