package modulecheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/isolates"
)

const (
	// fault is how much CPU time a process that did not end in time must have used for that to be the module's fault: a
	// machine that is busy gives it less.
	fault = 2 * time.Second
	// maxOutput is how many bytes of the process's output are read. It is killed when it writes more.
	maxOutput = 4 << 20
)

// Checks opens checks. Any goroutine may use it.
type Checks struct {
	isolates.CheckConfig // how modules run
	// Executable is this binary; its main, or TestMain, calls BeChild. "" = modules are checked in a thread of this
	// process.
	Executable string
	// Remote starts the processes, where this process may not; nil = it does itself.
	Remote *spawn.Spawner
}

// policy is what a process that has one module of the owner needs: compilers, and whether there is WebAssembly.
func (c *Checks) policy(owner string) workers.Policy {
	if c.PolicyOf == nil {
		return workers.Policy{Compilers: c.Compilers, WASM: true}
	}
	p := c.PolicyOf(owner)
	return workers.Policy{Compilers: p.Compilers.Within(c.Compilers), WASM: p.WASM}
}

// Checker checks one module. One goroutine uses it.
type Checker struct {
	checks *Checks
	log    func(events.LogLine)
	thread *isolates.Checker // nil: the check has a process
	lost   bool
}

// Open returns a check that passes what the module writes to log, on any goroutine. Close must be called.
func (c *Checks) Open(log func(events.LogLine)) *Checker { return &Checker{checks: c, log: log} }

// Check loads the module, and returns which handlers it has, as isolates.Checker does.
func (c *Checker) Check(ctx context.Context, w *workers.Worker) (workers.Handlers, error) {
	if len(w.Modules) > 0 {
		switch policy := c.checks.policy(w.Owner); {
		case !policy.WASM:
			return workers.Handlers{}, events.Fail(events.ReasonException, "%s", noWebAssembly)
		case policy.Compilers.OrDefault() != workers.CompilersFull:
			return workers.Handlers{}, events.Fail(events.ReasonException, "%s", noCompilers)
		}
		w = withModules(w)
	}
	if c.checks.Executable != "" || c.checks.Remote != nil {
		child, err := c.start()
		if err == nil {
			return child.check(ctx, c, w)
		}
	}
	var err error
	if c.thread, err = isolates.OpenChecker(loading{c.log}, c.checks.CheckConfig); err != nil {
		return workers.Handlers{}, err
	}
	return c.thread.Check(ctx, w)
}

// Why an owner cannot deploy modules of WebAssembly.
const (
	noWebAssembly = "the bundle has modules of WebAssembly, and this owner has none: its operator grants it (policy: wasm)"
	noCompilers   = "the bundle has modules of WebAssembly, which needs V8's optimizing compilers, and this owner does " +
		"not have them (policy: compilers)"
)

// withModules is w with code that gets each of its modules when the rest is loaded: V8 must accept those too that only
// a handler would import.
func withModules(w *workers.Worker) *workers.Worker {
	name := "pinwheelImported"
	for strings.Contains(w.Code, name) {
		name += "_"
	}
	with := *w
	with.Code += fmt.Sprintf("\nimport { imported as %s } from \"pinwheel:wasm\";\n", name)
	for _, m := range w.Modules {
		with.Code += fmt.Sprintf("%s(%q);\n", name, m.Hash)
	}
	return &with
}

// Close ends the check. lost reports whether the module cost the check's process, or its thread. inThread says that it
// was a thread of this process.
func (c *Checker) Close() (lost, inThread bool) {
	if c.thread == nil {
		return c.lost, false
	}
	c.thread.Close()
	return c.thread.LostThread(), true
}

// child is a process that checks a module.
type child struct {
	*spawn.Check
	close func() // called once, after its end
}

// start starts a process. It has read nothing yet.
func (c *Checker) start() (p child, err error) {
	by, done := c.checks.Remote, func() {}
	if by == nil {
		by = spawn.Local(spawn.Starter{Executable: c.checks.Executable})
		done = by.Close
	}
	if p.Check, err = by.Check(); err != nil {
		done()
		return p, err
	}
	p.close = done
	return p, nil
}

// check sends the request, passes on what the module writes, and waits for the end of the process.
func (p child) check(ctx context.Context, c *Checker, w *workers.Worker) (workers.Handlers, error) {
	ctx, cancel := context.WithTimeout(ctx, spawn.CheckTime)
	defer cancel()
	defer context.AfterFunc(ctx, p.Kill)()
	policy := c.checks.policy(w.Owner)
	text, err := json.Marshal(request{
		Owner: w.Owner, Name: w.Name, Version: w.Version, Number: w.Number, Hash: w.Hash, Spec: w.Spec, Code: w.Code,
		File: w.File, SourceMap: w.SourceMap, Modules: w.Modules,
		Addresses: c.checks.AllowAddresses, Hosts: c.checks.AllowHosts,
		Compilers: policy.Compilers, WASM: policy.WASM,
	})
	if err == nil {
		_, err = io.Copy(p.In, bytes.NewReader(text)) // it reads all before it does anything
	}
	_ = p.In.Close()
	var answer *result
	if err == nil {
		answer, err = p.read(c.log)
	}
	if answer == nil {
		p.Kill()
	}
	ended := p.Wait()
	p.close()
	if answer == nil {
		return workers.Handlers{}, c.died(ctx, w, ended.CPU, errors.Join(err, ended.Err()))
	}
	c.lost = answer.Lost
	switch {
	case answer.Failure != nil:
		return workers.Handlers{}, answer.Failure
	case answer.Error != "":
		return workers.Handlers{}, fmt.Errorf("check of %s: %s", w.Target(), answer.Error)
	}
	return answer.Handlers, nil
}

// read reads messages until the result. It returns nil if there is none.
func (p child) read(log func(events.LogLine)) (*result, error) {
	messages := json.NewDecoder(io.LimitReader(p.Out, maxOutput))
	for {
		var m message
		if err := messages.Decode(&m); err != nil {
			return nil, err
		}
		if m.Line != nil {
			log(*m.Line)
		}
		if m.Result != nil {
			return m.Result, nil
		}
	}
}

// died returns the error of a process that has ended without a result. The client's end, and the fleet's, is not the
// module's fault.
func (c *Checker) died(ctx context.Context, w *workers.Worker, used time.Duration, why error) error {
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("check of %s: %w", w.Target(), err)
	}
	if ctx.Err() != nil {
		c.lost = used >= fault
		return events.Fail(events.ReasonTimeout, "the module was not loaded in time: it had %s of CPU time", used)
	}
	c.lost = true
	return events.Fail(events.ReasonCrash, "the process that loaded the module died: %v", why)
}
