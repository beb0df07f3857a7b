//go:build breach && linux

package breach_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/internal/test/breach"
)

// forgery is something that a guest writes to a descriptor of its cell.
type forgery struct {
	name string
	to   int    // breach's say: 0 = the connection of calls, 1 = that of events
	what []byte // the cell's own threads may write before and after it
	why  string // is in the log
}

const toCalls, toEvents = 0, 1

// Numbers of attempts: the first one that a cell gets, and one that it never gets.
const (
	ownAttempt     = 1 << 32
	foreignAttempt = 1<<32 + 99
)

// framed is a frame with these fields: numbers, texts, and truth values.
func framed(kind wire.Kind, fields ...any) []byte {
	b := []byte{0, 0, 0, 0, byte(kind)}
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			b = binary.AppendUvarint(b, uint64(f))
		case int64:
			b = binary.AppendVarint(b, f)
		case string:
			b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
		case bool:
			b = append(b, 0)
			if f {
				b[len(b)-1] = 1
			}
		}
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// ended is the report that an attempt has ended.
func ended(attempt int) []byte { return framed(wire.Report, attempt, 2, 0, int64(0), int64(0)) }

// answered is the report that a request was answered, and has ended.
func answered(attempt int) []byte {
	return framed(wire.Report, attempt, 3, 0, int64(200), "", 0, "done", int64(0), 0, int64(0), int64(0))
}

// called is a request of HTTP/2 with a head of package calls. No stream of the cell has its number.
func called(path string, fields ...any) []byte {
	head := framed(0, fields...)[5:]
	body := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	body = append(binary.BigEndian.AppendUint32(body, 0), head...)
	var names, b bytes.Buffer
	encoder := hpack.NewEncoder(&names)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "broker"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true})
	}
	framer := http2.NewFramer(&b, nil)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 99_999, BlockFragment: names.Bytes(), EndHeaders: true})
	_ = framer.WriteData(99_999, true, body)
	return b.Bytes()
}

const (
	noAttempt = "the cell has no such attempt"
	endsTwice = "an attempt ends twice"
)

// forgeries are frames of all kinds, and requests, about what the cell was not given.
var forgeries = []forgery{
	{"ready again", toEvents, framed(wire.Ready, wire.Version), "no frame of kind 64"},
	{"a thread that is none", toEvents, framed(wire.Next, 99, 1), "and not 99"},
	{"a report on a foreign attempt", toEvents, ended(foreignAttempt), noAttempt},
	{endsTwice, toEvents, slices.Concat(answered(ownAttempt), ended(ownAttempt)), noAttempt},
	{"a foreign worker has no context", toEvents, framed(wire.Closed, 0, 77), "no worker 77"},
	{"the body of a foreign attempt", toEvents, framed(wire.Chunk, foreignAttempt, "x", true, false, false), noAttempt},
	{"a foreign attempt runs", toEvents, framed(wire.Running, int64(0), foreignAttempt, int64(1), 1), noAttempt},
	{"CPU time of a foreign owner", toEvents, framed(wire.Charge, "beta", int64(1e9)), "nothing of the owner"},
	{"a foreign attempt is away", toEvents, framed(wire.Away, foreignAttempt, true), noAttempt},
	{"a foreign attempt calls", toEvents, framed(wire.Calling, foreignAttempt, true), noAttempt},
	{"a foreign worker overstays", toEvents, framed(wire.Overstays, 77, true), "no worker 77"},
	{"a thread is lost to a foreign worker", toEvents, framed(wire.Lost, 77, false), "no worker 77"},
	{"a line of a foreign owner", toEvents, framed(wire.Log, `{"owner":"beta","worker":"victim"}`), "no worker"},
	{"an operation of a foreign attempt", toEvents, framed(wire.Span, foreignAttempt, "{}"), noAttempt},
	{"an answer that nobody asked for", toEvents, framed(wire.Answer, 1<<40, "{}"), "that was not asked"},
	{"a frame of the broker", toEvents, framed(wire.Attempts, 0, 0), "no frame of kind"},
	{"a frame of 2 GB", toEvents, []byte{0, 0, 0, 128}, "a frame has 2147483648 bytes"},
	{"garbage for frames", toEvents, bytes.Repeat([]byte{255}, 1000), "a frame has 4294967295 bytes"},
	{"tasks for a foreign owner", toCalls, called("/enqueue", "beta", "victim", 1, 0, "", 0), "no worker of"},
	{"a binding of a foreign worker", toCalls, called("/call", 0, "beta", "victim", "1-x"), "was not given"},
	{"a binding of a foreign attempt", toCalls, called("/call", foreignAttempt, "kv", "KV", "get", 0, 0), "no attempt"},
	{"garbage for calls", toCalls, bytes.Repeat([]byte{255}, 1000), "no HTTP/2"},
}

// What a guest forges ends its cell, is counted, logged and audited. Others do not notice it. Each guest is of an owner
// of its own: a cell that ends again and again starts ever later.
func TestForgedFramesEndTheCell(t *testing.T) {
	t.Parallel()
	s := openCells(t)
	var attempts []breach.Attempt
	for _, f := range forgeries {
		attempts = append(attempts, breach.Attempt{Name: f.name,
			Script: fmt.Sprintf("say(%d, %q)", f.to, hex.EncodeToString(f.what))})
	}
	guest := breach.Worker(attempts)
	s.undisturbed(func() {
		for i, f := range forgeries {
			owner := fmt.Sprintf("liar-%d", i)
			s.deploy(owner, "guest", guest, `{"limits": {"cpuMs": 120000, "wallMs": "10m"}}`)
			before := s.lies()
			body, err := breach.Question(f.name, s.aims)
			require.NoError(t, err)
			m, err := s.nc.Request("pinwheel.call.fetch."+owner+".guest", body, patience)
			require.NoError(t, err, "%s: the guest's own event has no end", f.name)
			// Its cells have ended too often, or it was answered before: calls have a connection of their own.
			if status := m.Header.Get("Http-Status"); f.to == toEvents && f.name != endsTwice {
				require.Equal(t, "503", status, "%s: %v %s", f.name, m.Header, m.Data)
			} else {
				require.Contains(t, []string{"200", "503"}, status, "%s: %v %s", f.name, m.Header, m.Data)
			}
			require.Eventually(t, func() bool { return s.lies() > before }, patience, tick, f.name)
			require.Eventually(t, func() bool { return s.said(owner, f.why) }, patience, tick, "%s is not logged", f.name)
		}
	})
	var ends map[string]int
	require.Eventually(t, func() bool { ends = s.ends(); return len(ends) == len(forgeries) }, patience, tick)
	t.Logf("audited: %v", ends)
	require.NoError(t, s.victim("beta"))
	require.NoError(t, s.victim("gamma"))
	require.Equal(t, 1, s.starts("own:beta"), "beta's cell is the first one")
}

// tick is how often a test looks for a fact.
const tick = 10 * time.Millisecond

// starts is how many cells a class has had.
func (s *scene) starts(class string) int {
	s.t.Helper()
	_, text := s.p.Get("/admin/pool")
	var pool struct {
		Cells []struct {
			Class  string
			Starts int
		}
	}
	require.NoError(s.t, json.Unmarshal(text, &pool))
	for _, c := range pool.Cells {
		if c.Class == class {
			return c.Starts
		}
	}
	return 0
}

// said reports whether the log says that the cell of an owner was ended, and why.
func (s *scene) said(owner, why string) bool {
	return slices.ContainsFunc(s.p.Lines(), func(line map[string]any) bool {
		class, _ := line["class"].(string)
		text, _ := line["error"].(string)
		message, _ := line["message"].(string)
		return class == "own:"+owner && strings.Contains(text, why) &&
			strings.Contains(message, "it may have been broken into")
	})
}

// ends are the cells that the audit says were ended, by owner.
func (s *scene) ends() map[string]int {
	all := map[string]int{}
	for line := range strings.Lines(s.pinwheel("", "audit", "--json")) {
		var r struct{ Action, Owner string }
		require.NoError(s.t, json.Unmarshal([]byte(line), &r), line)
		if r.Action == "cells.end" {
			all[r.Owner]++
		}
	}
	return all
}
