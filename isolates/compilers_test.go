package isolates

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	v8 "rogchap.com/v8go"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/endless"
)

// hotLoop is JavaScript that runs a function hot, and has in optimized whether V8 has optimized it. The bits of
// %GetOptimizationStatus are: by any compiler, by Maglev, by TurboFan.
const hotLoop = `function hot(x) { let n = 0; for (let i = 0; i < 100; i++) n += i % x; return n }
	for (let i = 0; i < 20000; i++) hot(7);
	const optimized = (%GetOptimizationStatus(hot) & (1 << 4 | 1 << 5 | 1 << 6)) !== 0;`

const runsHot = `let n = 0; export default { fetch() { ` + hotLoop + ` return new Response(++n + " " + optimized) } }`

const countsRequests = `let n = 0; export default { fetch() { return new Response(++n) } }`

// inChildWith runs a test in processes of its own in which V8 starts with functions such as %GetOptimizationStatus,
// once for each of the values. It returns that of this process, and false in the one that has started the others.
func inChildWith(t *testing.T, values ...string) (value string, child bool) {
	t.Helper()
	const variable = "ISOLATES_COMPILERS"
	if value = os.Getenv(variable); value != "" {
		v8.SetFlags("--allow-natives-syntax", "--no-concurrent-recompilation") // optimized code is there at once
		return value, true
	}
	for _, value := range values {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"="+value)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", value, out)
		require.Contains(t, string(out), "--- PASS: "+t.Name(), value)
	}
	return "", false
}

var baseline = workers.Policy{Compilers: workers.CompilersBaseline}

// V8 optimizes no code of an owner with baseline, and that of others beside it. A change of the policy holds for the
// next event, in all modes.
func TestOwnersWithBaseline(t *testing.T) {
	if _, child := inChildWith(t, "full"); !child {
		return
	}
	for _, mode := range workers.Modes {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t)
			b.mode = mode
			b.pool.SetPolicy("safe", baseline)
			prewarmedReady(b, b.pool.cfg.prewarmed())
			require.Equal(t, "1 false", b.text(workerOf("safe", runsHot)))
			require.Equal(t, "1 true", b.text(workerOf("fast", runsHot)))
			b.pool.SetPolicy("fast", baseline)
			require.Equal(t, "1 false", b.text(workerOf("fast", runsHot)), "not in its isolate of before")
			b.pool.SetPolicy("safe", workers.Policy{})
			require.Equal(t, "1 true", b.text(workerOf("safe", runsHot)))
			switch mode {
			case workers.Oneshot:
				b.awaitIdle(0, map[string]int{})
			default:
				b.awaitIdle(2, map[string]int{"fast:baseline": 1, "safe": 1}) // nothing else stays
			}
		})
	}
}

// However soon before an event begins its owner gets another policy, it runs in an isolate as the policy says.
func TestPoliciesHoldForTheNextEvent(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		for i := range 10 {
			policy := workers.Policy{}
			if i%2 == 0 {
				policy = baseline
			}
			b.mu.Lock()
			b.taken = func() { b.pool.SetPolicy("acme", policy) }
			b.mu.Unlock()
			require.Equal(t, "1", b.text(workerOf("acme", countsRequests)))
		}
	})
}

// Owners of a group that have other compilers share no isolate with the rest of it.
func TestBaselineInAGroup(t *testing.T) {
	if _, child := inChildWith(t, "full"); !child {
		return
	}
	b := newBench(t)
	group := workers.Policy{Group: "acme"}
	apart := workers.Policy{Group: "acme", Compilers: workers.CompilersBaseline}
	for owner, p := range map[string]workers.Policy{"shop": group, "blog": group, "api": apart, "edge": apart} {
		b.pool.SetPolicy(owner, p)
	}
	for owner, want := range map[string]string{"shop": "1 true", "blog": "1 true", "api": "1 false", "edge": "1 false"} {
		require.Equal(t, want, b.text(workerOf(owner, runsHot)), owner)
	}
	b.awaitIdle(2, map[string]int{"@acme": 2, "@acme:baseline": 2})
	b.pool.SetPolicy("shop", apart)
	require.Equal(t, "1 false", b.text(workerOf("shop", runsHot)))
	b.awaitIdle(2, map[string]int{"@acme": 1, "@acme:baseline": 3})
}

// A module is loaded for a check with the compilers that its owner has.
func TestChecksHaveTheOwnersCompilers(t *testing.T) {
	if _, child := inChildWith(t, "full"); !child {
		return
	}
	h := &lines{}
	c, err := OpenChecker(h, CheckConfig{PolicyOf: func(owner string) workers.Policy {
		return map[string]workers.Policy{"safe": baseline}[owner]
	}})
	require.NoError(t, err)
	defer c.Close()
	for _, owner := range []string{"safe", "fast"} {
		_, err := c.Check(t.Context(), workerOf(owner, hotLoop+`; console.log(optimized); export default { task() {} }`))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"info safe/w false", "info fast/w true"}, h.text)
}

// A process with fewer compilers runs events as others do, and has no optimized code whatever policies say.
func TestProcessesWithFewerCompilers(t *testing.T) {
	value, child := inChildWith(t, string(workers.CompilersBaseline), string(workers.CompilersNone))
	if !child {
		return
	}
	with := func(c *Config) { c.Compilers, c.Threads = workers.Compilers(value), 3 } // jitless fails with several
	b := newBench(t, with)
	b.pool.SetPolicy("full", workers.Policy{Compilers: workers.CompilersFull})
	b.pool.SetPolicy("safe", baseline)
	for _, owner := range []string{"full", "safe", "none"} {
		for _, mode := range workers.Modes {
			b.mode = mode
			require.Equal(t, "1 false", b.text(workerOf(owner, runsHot)), "%s, %s", owner, mode)
			w := workerOf(owner, echoJSON)
			w.Name = "echo"
			o := b.run(w, fetch("POST", "http://x/", echoBody))
			require.Nil(t, o.end.Failure)
			require.JSONEq(t, `{"ok":true,`+echoBody[1:], string(o.reply.Body))
		}
	}
	require.ErrorContains(t, newPool(t, DefaultConfig(1), b, b).Open(), "a process cannot change that")
	c := DefaultConfig(1)
	c.Compilers = "jitless"
	require.EqualError(t, c.Validate(), `isolates: Compilers is "jitless": it is full, baseline or none`)
}

// With --no-maglev-untagged-phis, V8 ends the thread in such code (docs/development/adr/0072).
func TestOptimizedCodeLosesNoThread(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, body := range []string{
		`r = date.getTime(); for (let j = 1; j < 4096; j <<= 1) r = new Array(1000)`,
		`r = date.getTime(); for (let j = 0; j < 12; j++) r = { j }`,
		`r = 1.5; for (let j = 0; j < 12; j++) r = j & 1 ? r * 1.5 : String(j)`,
	} {
		b.endless(t, endless.Shape{Body: body, Loop: "a function that is called",
			Code: "const date = new Date(0); let r; const once = () => { " + body + " }; for (;;) once()"})
	}
	require.Zero(t, b.pool.losses.parked.Load())
}

// Loops that V8 does not optimize are ended as those that it does.
func TestEndlessLoopsInBaseline(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64N(1e9)
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	count := 3
	if wholeSuite {
		count = 50
	}
	b := newBench(t)
	b.pool.SetPolicy("acme", baseline)
	shapes := endless.All(seed, 1)
	for range count {
		b.endless(t, shapes[random.IntN(len(shapes))])
		b.endless(t, endless.Mixed(random.IntN))
	}
	require.Zero(t, b.pool.losses.parked.Load())
	for _, tenant := range b.pool.Stats().Owners {
		require.Equal(t, "acme:baseline", tenant.Owner)
	}
}
