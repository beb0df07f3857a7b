package wasmgate

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/wasmtest"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
	"github.com/pinwheel-run/pinwheel/isolates/wasm"
)

// header begins a module.
const header = "\x00asm\x01\x00\x00\x00"

// typed is a module of n types, all different from those of another seed.
func typed(n, seed int) []byte {
	contents := []byte{byte(n) | 0x80, byte(n >> 7)}
	for i := range n {
		k := seed*n + i
		contents = append(contents, 0x60, 14)
		for bit := range 14 {
			contents = append(contents, 0x7f-byte(k>>bit&1))
		}
		contents = append(contents, 0)
	}
	size := len(contents)
	return append(append([]byte(header), 1, byte(size)|0x80, byte(size>>7)|0x80, byte(size>>14)), contents...)
}

// fresh is a gate that counts for itself.
func fresh() *Gate {
	g := New(true)
	g.kept = newKept()
	return g
}

func TestAdmit(t *testing.T) {
	g := fresh()
	code := []byte(header)
	for range 2 {
		answer, err := g.Admit("acme:wasm", code)
		require.NoError(t, err)
		require.Equal(t, v8x.AnswerWasm(sha256.Sum256(code), perModule+8, perModule+8, 0), answer)
	}
	require.Len(t, g.verdicts, 1)
	for range 2 {
		_, err := g.Admit("acme:wasm", []byte("\x00asm\x02\x00\x00\x00"))
		require.ErrorContains(t, err, "@+")
	}
	for range 2 * mostVerdicts {
		code = binary.LittleEndian.AppendUint32([]byte(header+"\x00\x05\x00"), uint32(len(g.verdicts)))
		_, err := g.Admit("acme:wasm", code)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(g.verdicts), mostVerdicts)
}

// Modules are for those to whom they are granted, and whose code V8 may optimize.
func TestAdmitNeedsTheGrantAndTheCompilers(t *testing.T) {
	for _, c := range []struct {
		compilers bool
		tenant    string
		want      error
	}{{false, "acme:wasm", errNoCompilers}, {true, "acme:baseline", errNoCompilers}, {true, "acme", errNotGranted}} {
		answer, err := New(c.compilers).Admit(c.tenant, []byte(header))
		require.NoError(t, err)
		require.Equal(t, v8x.AnswerNoWasm(c.want.Error()), answer)
		require.Equal(t, c.want, New(c.compilers).Tag(c.tenant, "i32"))
	}
}

// V8 keeps types until the process ends. A tenant has a share of them, and what it has had already costs nothing.
func TestTypesAreCounted(t *testing.T) {
	g := fresh()
	const n, acme = 2000, "acme:wasm"
	for seed := range mostTypesOfTenant / n {
		for range 2 {
			_, err := g.Admit(acme, typed(n, seed%4))
			require.NoError(t, err)
		}
		g.kept.types[acme] = (seed + 1) * n
	}
	_, err := g.Admit(acme, typed(n, 4))
	require.ErrorContains(t, err, "52000 types since the process began, at most 50000 are allowed")
	require.ErrorContains(t, g.Tag(acme, "i32"), "50001 types")
	_, err = g.Admit("other:wasm", typed(n, 4))
	require.NoError(t, err)
	g.kept.all = mostTypes
	_, err = g.Admit("third:wasm", typed(n, 4))
	require.ErrorContains(t, err, "no room for the types")
	require.ErrorContains(t, g.Tag("other:wasm", ""), "no room for the types")
}

// Tags have types too. One of them counts once.
func TestTagsAreCounted(t *testing.T) {
	g := fresh()
	for _, parameters := range []string{"i32", "i32", "i32,i64", ""} {
		require.NoError(t, g.Tag("acme:wasm", parameters))
	}
	require.Equal(t, 3, g.kept.all)
	require.Error(t, g.Tag("acme:wasm", strings.Repeat("i32,", 300)))
}

// V8 keeps memory for the types of what it decodes, each time.
func TestDecodingIsCounted(t *testing.T) {
	g := fresh()
	code := typed(2000, 1)
	hash := sha256.Sum256(code)
	_, err := g.Admit("acme:wasm", code)
	require.NoError(t, err)
	times := 0
	for g.Decode("acme:wasm", hash[:]) == nil {
		times++
	}
	require.InDelta(t, mostDecodedOfTenant/(perTypeByte*2000*17), times, 2)
	require.ErrorContains(t, g.Decode("acme:wasm", hash[:]), "64 MB")
	require.NoError(t, g.Decode("other:wasm", hash[:]))
	g.kept.allBytes = mostDecoded
	require.ErrorContains(t, g.Decode("other:wasm", hash[:]), "no room to decode")
}

// Code with many moves is charged by them, not by its bytes.
func TestWorkIsCharged(t *testing.T) {
	g := fresh()
	code := wasmtest.VariablesAndBlocks(1000, 500)
	answer, err := g.Admit("acme:wasm", code)
	require.NoError(t, err)
	info, err := wasm.Check(code)
	require.NoError(t, err)
	rest := uint64(perModule + len(code) + perFunction*info.Functions)
	require.Greater(t, info.Compiled, int64(perCodeByte*info.Code))
	require.Equal(t, v8x.AnswerWasm(sha256.Sum256(code), rest+uint64(perWork*info.Compiled),
		rest+uint64(mostOfWork*info.Compiled), uint64(info.Functions)), answer)
}
