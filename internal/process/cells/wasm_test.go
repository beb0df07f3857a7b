package cells

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// The modules of WebAssembly of a bundle go to the cell with its code, also the largest.
func TestModulesGoToTheCell(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	for owner, size := range map[string]int{"alice": 3 << 20, "bob": 16<<20 - 64} {
		code := append([]byte("\x00asm\x01\x00\x00\x00\x00\x80\x80\x80\x00"), make([]byte, size)...)
		for i := range 4 { // the custom section has so many bytes, and an empty name
			code[9+i] = byte(size>>(7*i))&0x7f | 0x80
		}
		code[12] &= 0x7f
		sum := sha256.Sum256(code)
		hash := hex.EncodeToString(sum[:])
		h.catalog.SetPolicy(owner, workers.Policy{WASM: true})
		h.deploy(owner, `import { imported } from "pinwheel:wasm"; const m = imported("`+hash+`");
			export default { task: () => new WebAssembly.Instance(m) instanceof WebAssembly.Instance }`,
			func(w *workers.Worker) { w.Modules = []*workers.Module{{Hash: hash, Code: code}} })
		reply, s := h.run(owner, "w", "")
		require.Equal(t, lifecycle.Ack, s.Outcome.Verdict, reply)
		require.Contains(t, reply, "true")
	}
}
