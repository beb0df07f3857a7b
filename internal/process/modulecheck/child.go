package modulecheck

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/isolates"
)

const (
	maxCPU   = 20      // seconds of CPU time of the process, of which V8's start takes less than one
	maxFiles = 256     // open files of the process
	maxData  = 2 << 30 // bytes of memory that the process may write to; the module's heap is limited besides
)

// request is what the process reads.
type request struct {
	Owner     string       `json:"owner"`
	Name      string       `json:"name"`
	Version   string       `json:"version"`
	Number    int          `json:"number"`
	Hash      string       `json:"hash"`
	Spec      workers.Spec `json:"spec"`
	Code      string       `json:"code"`
	File      string       `json:"file"`
	SourceMap []byte       `json:"sourceMap,omitempty"`

	Addresses []netip.Prefix `json:"addresses,omitempty"`
	Hosts     []string       `json:"hosts,omitempty"`

	Compilers workers.Compilers `json:"compilers,omitempty"`
	WASM      bool              `json:"wasm,omitempty"`
	Modules   []*workers.Module `json:"modules,omitempty"` // of WebAssembly
}

// message is one of those that the process writes: lines of the module, and the result as the last one.
type message struct {
	Line   *events.LogLine `json:"line,omitempty"`
	Result *result         `json:"result,omitempty"`
}

// result is what the process found out.
type result struct {
	Handlers workers.Handlers `json:"handlers"`
	Failure  *events.Failure  `json:"failure,omitempty"` // of the module
	Error    string           `json:"error,omitempty"`   // why there was no check
	Lost     bool             `json:"lost,omitempty"`    // V8 has kept the thread
}

// BeChild checks a module and ends, if the process was started for that. main calls it first, and so does the TestMain
// of each package whose tests run this binary as the pinwheel command.
func BeChild() {
	if os.Getenv(spawn.CheckVariable) == "" {
		return
	}
	limitSelf()
	in := bufio.NewReader(os.Stdin)
	_, _ = in.Peek(1) // who has started this process has done to it what it must: it cannot when the process is hidden
	if os.Getenv(spawn.CheckVariable) == spawn.Confined {
		_ = confine.Self() // the supervisor has said what this system refuses
	}
	if err := serve(in, os.Stdout); err != nil {
		os.Exit(1)
	}
	os.Exit(0) // V8 may still have the thread
}

// limitSelf limits the process before it reads anything. A limit that the system refuses is not there: the others, and
// the parent's deadline, hold.
func limitSelf() {
	for _, l := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_CPU, maxCPU}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_DATA, maxData}} {
		_ = unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.most, Max: l.most})
	}
	_ = os.Chdir("/")
}

// serve reads a request, loads the module and writes the result.
func serve(in io.Reader, out io.Writer) error {
	var r request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return err
	}
	w := &writer{to: json.NewEncoder(out)}
	answer := result{}
	checker, err := isolates.OpenChecker(loading{func(l events.LogLine) { w.write(message{Line: &l}) }},
		isolates.CheckConfig{AllowAddresses: r.Addresses, AllowHosts: r.Hosts, Compilers: r.Compilers,
			PolicyOf: func(string) workers.Policy { return workers.Policy{WASM: r.WASM} }})
	if err == nil {
		answer.Handlers, err = checker.Check(context.Background(), &workers.Worker{
			Owner: r.Owner, Name: r.Name, Version: r.Version, Number: r.Number, Hash: r.Hash, Spec: r.Spec, Code: r.Code,
			File: r.File, SourceMap: r.SourceMap, Modules: r.Modules,
		})
		answer.Lost = checker.LostThread()
	}
	if !errors.As(err, &answer.Failure) && err != nil {
		answer.Error = err.Error()
	}
	w.write(message{Result: &answer})
	return w.err
}

// writer writes messages, of any goroutine.
type writer struct {
	mu  sync.Mutex
	to  *json.Encoder
	err error
}

func (w *writer) write(m message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.to.Encode(m)
	}
}

// loading is the host of a module that is only loaded.
type loading struct{ log func(events.LogLine) }

// Enqueue refuses: no event runs that could send a task.
func (loading) Enqueue(context.Context, string, string, []isolates.Message) error {
	return errors.New("tasks are sent by handlers, not while the module is loaded")
}

// Call refuses: no event runs that could call a binding.
func (loading) Call(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
	return lifecycle.Answer{}, errors.New("bindings are called by handlers, not while the module is loaded")
}

// Log passes the line on.
func (h loading) Log(l events.LogLine) { h.log(l) }
