//go:build breach

package v8x

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// breaches uses each function of __breach. It throws when one gives something else.
const breaches = `
const { call, address, read, write, find, threads } = __breach;
const is = (want, got) => { if (want !== got) throw new Error(want + " is not " + got) };
const text = (bytes) => String.fromCharCode(...bytes);
const bytes = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const secret = bytes("needle-" + "0123456789".repeat(20));

export default () => {
	is(true, call(%d) > 0);
	is(-9, call(%d, -1));
	is(0, call(%d, 1, new Uint8Array(16)));

	const places = find(bytes("needle-" + "0123456789".repeat(10)), 100);
	const whole = places.filter((at) => text(read(at, secret.length)) === text(secret));
	is(true, whole.includes(address(secret)));
	for (const at of whole) is(6, write(at, bytes("NEEDLE")));
	is("NEEDLE-0", text(secret.subarray(0, 8)));
	is(true, find(bytes("NEEDLE-" + "0123456789".repeat(10)), 100).some((at) => whole.includes(at)));
	is(0, find(bytes("NEEDLE"), 0).length);

	is(0, read(4096, 10).length);
	is(-14, write(4096, secret));
	is(20, threads(20));
}`

// JavaScript of a test build makes calls of the kernel, and finds, reads and writes memory. What is not mapped does not
// end the process.
func TestBreach(t *testing.T) { tryBreaches(t, func() {}) }

// It needs no descriptors for that.
func TestBreachWithoutDescriptors(t *testing.T) {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := syscall.Rlimit{Cur: 0, Max: limit.Max}
	tryBreaches(t, func() {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
		t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) })
	})
}

// tryBreaches runs breaches. before is called when all is there for it.
func tryBreaches(t *testing.T, before func()) {
	t.Helper()
	_, c := newContext(t, roomy)
	text := fmt.Sprintf(breaches, syscall.SYS_GETTID, syscall.SYS_CLOSE, syscall.SYS_CLOCK_GETTIME)
	state, r := c.Module(Source{Name: "m.js", Text: text})
	require.NoError(t, r.Err)
	require.Equal(t, Evaluated, state)
	before()
	var call Call
	require.NoError(t, c.Call(call.Reset(50).Bytes(), nil).Err)
}
