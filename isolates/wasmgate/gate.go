// Package wasmgate decides which modules of WebAssembly V8 may compile in a process, and what an isolate is
// charged for one. isolates/wasm reads a module; the package remembers the outcome by the hash of its bytes. It
// also counts what V8 keeps until the process ends: the types of all modules.
package wasmgate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pinwheel-run/pinwheel/isolates/owners"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
	"github.com/pinwheel-run/pinwheel/isolates/wasm"
)

// What is charged for a module: V8's machine code takes up to 8 times as much as a code section of ordinary
// code, and each function has entries in tables. V8 keeps a copy of the bytes. Where control flow splits or
// joins, values are moved: up to 14 bytes of machine code for a unit of Info.Work. No ordinary code has so many
// moves that 2 bytes for each are more than the code, so that is what an isolate is charged; what all modules of
// a process may take counts with 14.
const (
	perCodeByte = 8
	perWork     = 2
	mostOfWork  = 14
	perFunction = 128
	perModule   = 64 << 10
)

// mostVerdicts bounds how many outcomes are remembered.
const mostVerdicts = 1024

var (
	errNoCompilers = errors.New("WebAssembly needs V8's optimizing compilers, which this owner does not have " +
		"(policy: compilers)")
	errNotGranted = errors.New("this owner has no WebAssembly: its operator grants it (policy: wasm)")
)

// Gate admits modules. Any goroutine may call it.
type Gate struct {
	compilers bool // of the process
	kept      *kept

	mu       sync.Mutex
	verdicts map[[32]byte]verdict
}

type verdict struct {
	info wasm.Info
	err  error
}

// New returns the gate of a pool, in a process whose V8 has all compilers, or not.
func New(compilers bool) *Gate {
	return &Gate{compilers: compilers, kept: process, verdicts: map[[32]byte]verdict{}}
}

// allow returns why a tenant has no WebAssembly, or nil.
func (g *Gate) allow(tenant string) error {
	switch {
	case !g.compilers || !owners.Optimizes(tenant):
		return errNoCompilers
	case !owners.WASM(tenant):
		return errNotGranted
	}
	return nil
}

// Admit answers v8x.AskWasm for a module in an isolate of a tenant. The error says why V8 must not compile it.
func (g *Gate) Admit(tenant string, code []byte) ([]byte, error) {
	if err := g.allow(tenant); err != nil {
		return v8x.AnswerNoWasm(err.Error()), nil
	}
	hash := sha256.Sum256(code)
	v := g.check(hash, code)
	if v.err != nil {
		return nil, v.err
	}
	if v.info.Types > 0 {
		if err := g.kept.countTypes(tenant, v.info.Types, wasm.TypeSection(code)); err != nil {
			return nil, err
		}
	}
	rest := perModule + int64(len(code)) + perFunction*int64(v.info.Functions)
	charge := rest + max(perCodeByte*int64(v.info.Code), perWork*v.info.Compiled)
	most := rest + max(perCodeByte*int64(v.info.Code), mostOfWork*v.info.Compiled)
	return v8x.AnswerWasm(hash, uint64(charge), uint64(most), uint64(v.info.Functions)), nil
}

// Decode answers v8x.AskWasmDecode for a module in an isolate of a tenant, by the hash of its bytes.
func (g *Gate) Decode(tenant string, hash []byte) error {
	g.mu.Lock()
	v, ok := g.verdicts[[32]byte(hash)]
	g.mu.Unlock()
	size := v.info.TypeBytes
	if !ok {
		size = wasm.MaxTypeBytes
	}
	return g.kept.countDecoded(tenant, size)
}

// Tag counts the type of a WebAssembly.Tag: its parameters, with commas between.
func (g *Gate) Tag(tenant, parameters string) error {
	if err := g.allow(tenant); err != nil {
		return err
	}
	if len(parameters) > mostTagText {
		return errors.New("too many parameters of a tag")
	}
	if err := g.kept.countDecoded(tenant, 1+strings.Count(parameters, ",")); err != nil {
		return err
	}
	return g.kept.countTypes(tenant, 1, []byte("tag:"+parameters))
}

// mostTagText is how long the parameters of a tag can be: 100 of externref.
const mostTagText = 1000

func (g *Gate) check(hash [32]byte, code []byte) verdict {
	g.mu.Lock()
	v, ok := g.verdicts[hash]
	g.mu.Unlock()
	if ok {
		return v
	}
	v.info, v.err = wasm.Check(code)
	if e := (*wasm.Error)(nil); errors.As(v.err, &e) {
		v.err = fmt.Errorf("%s @+%d", e.Reason, e.Offset)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.verdicts) >= mostVerdicts {
		clear(g.verdicts)
	}
	g.verdicts[hash] = v
	return v
}
