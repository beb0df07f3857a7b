package cells

import (
	"bytes"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// The lies, each with the check that it holds.

const foreign = "the cell has no such attempt"

var (
	aStream = &events.Stream{}
	aSocket = &events.Socket{}
	// big is a chunk that is more than a cell may send before anything was granted, with another one.
	big = make([]byte, firstChunks/2+1)
	// otherIDs are numbers that no attempt of the cell has.
	after    = func(id uint64) uint64 { return id + 1 }
	later    = func(id uint64) uint64 { return id + 1<<indexBits }
	unused   = func(id uint64) uint64 { return id & (1<<indexBits - 1) }
	negative = is(1<<indexBits | 1<<31)
	none     = is(0)
)

// reports are lies about attempts.
var reports = map[string]lie{
	// assigned.find: the index is one that there is
	"an attempt after the last":    {why: foreign, say: reported(after)},
	"an index that is negative":    {why: foreign, say: reported(negative)},
	"the span of a foreign one":    {why: foreign, say: all(numbers(wire.Span, 1<<indexBits+7, 0))},
	"a foreign one is away":        {why: foreign, say: numbers(wire.Away, 1<<indexBits+7, 1)},
	"a foreign one calls":          {why: foreign, say: numbers(wire.Calling, 1<<indexBits+7, 1)},
	"a thread runs a foreign one":  {why: foreign, say: runs(0, after, 1, 1)},
	"a chunk of a foreign one":     {why: foreign, say: chunk(after, events.Chunk{Data: []byte("x")})},
	"a use that is to come":        {why: foreign, say: reported(later)},                                 // its uses are enough
	"a use before the first":       {why: foreign, say: reported(unused)},                                // uses is 0
	"a chunk of a use to come":     {why: foreign, say: chunk(later, events.Chunk{End: true})},           // takeChunk: known
	"a thread runs a use to come":  {why: foreign, say: runs(0, later, 1, 1)},                            // takeRunning: known
	"a thread runs what has none":  {why: foreign, say: runs(0, none, 1, 7)},                             // takeRunning: w
	"two ends":                     {why: foreign, say: all(finished, finished), ended: true},            // noteReport: x
	"a reply after the end":        {why: foreign, say: all(finished, replies(nothing, 0)), ended: true}, // noteReport: x
	"two replies":                  {why: "two replies", say: all(replies(nothing, 0), replies(nothing, 0))},
	"a batch with a reply":         {why: "a batch has a reply", say: replies(nothing, 0), queue: true},
	"decisions about two of one":   {why: "decides about 2 events", say: ends(decided(2)), queue: true},
	"decisions about one of none":  {why: "decides about 1 events", say: ends(decided(1))}, // noteReport: Items
	"a task with a status":         {why: "has the status 200", say: replies(events.Reply{Status: 200}, 0)},
	"a body that no message has":   {why: "of 1048577 bytes", say: replies(long, 0), event: fetched}, // reply: MaxReply
	"a request without a status":   {why: "has the status 0", say: replies(nothing, 0), event: fetched},
	"a WebSocket nobody asked for": {why: "asked for none", say: replies(socketed, 1), event: fetched}, // reply: Upgrade
	"a WebSocket of a task":        {why: "has the status 101", say: replies(socketed, 1)},
	"a WebSocket with a body":      {why: "no such reply", say: replies(socketedToo, 1), event: upgradesInChunks},

	// package wire: its tests name all
	"a header that ends":      {why: "which none can have", say: replies(header("x\r\nb", "c"), 0)},
	"a decision that is none": {why: "decision 9", say: ends(lifecycle.End{Items: []lifecycle.Item{{Decision: 9}}})},
	"a reason that is none": {
		why: `reason "boredom"`,
		say: ends(lifecycle.End{Failure: &events.Failure{Reason: "boredom"}}),
	},
}

var (
	nothing     = events.Reply{}
	socketed    = events.Reply{Status: 101, Socket: aSocket}
	socketedToo = events.Reply{Status: 101, Socket: aSocket, Stream: aStream}
	begun       = events.Reply{Status: 200, Stream: aStream}
)

func header(name, value string) events.Reply { return events.Reply{Headers: []string{name, value}} }

func decided(n int) lifecycle.End {
	return lifecycle.End{Started: true, Items: make([]lifecycle.Item, n)}
}

// bodies are lies about bodies in chunks.
var bodies = map[string]lie{
	// reply: s.Stream
	"of a task":           {why: "no such reply", say: replies(events.Reply{Stream: aStream}, 0)},
	"nobody takes chunks": {why: "no such reply", say: replies(begun, 0), event: fetched},
	"and one at once":     {why: "no such reply", say: replies(twice, 0), event: streamed},

	// takeChunk: x.stream
	"without a reply":  {why: "has no reply", say: chunk(same, over), event: streamed},
	"of a whole reply": {why: "has no reply", say: all(replies(ok, 0), chunk(same, dot)), event: streamed},

	// stream.push
	"beyond the grant":   inChunks("0 were granted", pushes(big, big)),
	"after its end":      inChunks("after its end", all(chunk(same, over), chunk(same, dot))),
	"after it broke off": inChunks("after its end", all(chunk(same, broke), chunk(same, over))),
}

// inChunks is a lie about a body whose reply was reported.
func inChunks(why string, say func(*fake, *wire.Attempt)) lie {
	l := lie{why: why, say: all(replies(begun, 0), say)}
	l.event = streamed
	return l
}

var (
	ok    = events.Reply{Status: 200}
	long  = events.Reply{Status: 200, Body: make([]byte, 1<<20+1)}
	twice = events.Reply{Status: 200, Stream: aStream, Body: []byte("x")}
	dot   = events.Chunk{Data: []byte(".")}
	over  = events.Chunk{End: true}
	broke = events.Chunk{Failure: events.Fail(events.ReasonException, "why")}
)

// pushes sends the chunks of a body.
func pushes(list ...[]byte) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) {
		for _, data := range list {
			chunk(same, events.Chunk{Data: data})(f, a)
		}
	}
}

// threads are lies about threads, workers, owners, calls and questions.
var threads = map[string]lie{
	"a thread after the last":         {why: "threads 0 to 2, and not 3", say: numbers(wire.Next, 3, 1)}, // thread
	"it closes there":                 {why: "threads 0 to 2, and not 3", say: numbers(wire.Closed, 3, 1)},
	"it runs there":                   {why: "a number is 3: it is -1 to 2", say: runs(3, same, 1, 1)}, // takeRunning
	"it runs before the first":        {why: "a number is -2: it is -1 to 2", say: runs(-2, same, 1, 1)},
	"it takes less than no time":      {why: "a number is -1: it is 0", say: runs(0, same, -1, 1)},
	"a foreign worker runs":           {why: foreign, say: runs(0, same, 1, 2)},                             // takeRunning: w
	"a foreign worker closes":         {why: "no worker 2", say: numbers(wire.Closed, 0, 2)},                // worker
	"worker 0 closes":                 {why: "no worker 0", say: numbers(wire.Closed, 0, 0)},                // worker
	"a foreign worker overstays":      {why: "no worker 2", say: workerSays(wire.Overstays, 2, true)},       // takeOverstays: err
	"a foreign worker loses a thread": {why: "no worker 2", say: numbers(wire.Lost, 2, 0)},                  // takeLost: err
	"a turn ends that did not begin":  {why: "did not overstay", say: workerSays(wire.Overstays, 1, false)}, // == 0
	"too many turns":                  {why: "more than 1000 turns", say: workerSays(wire.Overstays, 1, times(mostTurns+1, true)...)},
	"too many threads are lost": {
		why:    "more than 1000 threads",
		say:    repeated(mostLost+1, numbers(wire.Lost, 1, 0)),
		banned: true,
	},
	"a call ends that did not begin":  {why: "did not begin", say: about(wire.Calling, false)}, // takeCalling: x.calls == 0
	"a call ends twice":               {why: "did not begin", say: about(wire.Calling, true, false, false)},
	"too many calls":                  {why: "more than 1000 calls", say: about(wire.Calling, times(1001, true)...)}, // >= Max
	"another owner pays":              {why: `the owner "quiet"`, say: charge("quiet", time.Second)},                 // takeCharge
	"an owner pays less than nothing": {why: "a number is -1: it is 0", say: charge("", -1)},
	"another owner writes":            {why: `of the owner "quiet"`, say: logs("quiet", "w")},             // cell.has
	"another worker writes":           {why: `no worker "other"`, say: logs("", "other")},                 // given.has
	"a line of no level":              {why: `has the level ""`, say: logs("", "w")},                      // LogLevels
	"a line is none":                  {why: "invalid character", say: raw(frameOf(wire.Log, 1, '!')...)}, // takeLog: err
	"a span is none":                  {why: "invalid character", say: spans("!")},                        // takeSpan: err
	"a span of the broker's":          {why: "no span of kind 3", say: spans(`{"Kind": 3}`)},              // checkSpan: default
	"a request to a worker":           {why: `to the worker "w"`, say: spans(`{"Kind": 0, "To": "w"}`)},
	"tasks for no name":               {why: "worker", say: spans(`{"Kind": 4, "To": "a b"}`)}, // CheckName
	"a line that is too long":         {why: "a line of output has", say: raw(longLine()...)},  // mostLine
	"an answer to question 0":         {why: "not asked", say: numbers(wire.Answer, 0, 0)},     // takeAnswer: number == 0
	"an answer to no question":        {why: "not asked", say: numbers(wire.Answer, 9, 0)},     // takeAnswer: asked.last
}

// misframed are lies about frames.
var misframed = map[string]lie{
	"a kind that there is not": {why: "no frame of kind 200", say: numbers(200)}, // take
	"a kind of the broker":     {why: "no frame of kind 18", say: numbers(wire.End)},
	"ready twice":              {why: "no frame of kind 64", say: numbers(wire.Ready, wire.Version)},
	"of no HTTP/2":             {why: "no HTTP/2", say: byCalls(bytes.Repeat([]byte{255}, 64))}, // serveCalls: left
	"of a wrong preface":       {why: "no HTTP/2", say: byCalls([]byte("GET / HTTP/1.1\r\n\r\n"))},
	"of 2 GB":                  {why: "a frame has 2147483648 bytes", say: raw(0, 0, 0, 128)},
	"of nothing":               {why: "a frame has 0 bytes", say: raw(0, 0, 0, 0)},
	"a byte too many in Next":  {why: "1 bytes too many", say: numbers(wire.Next, 0, 0, 0)},
	"in Closed":                {why: "1 bytes too many", say: numbers(wire.Closed, 0, 1, 0)},
	"in Charge":                {why: "1 bytes too many", say: all(charge("", 1, 0))},
	"in Away":                  {why: "1 bytes too many", say: numbers(wire.Away, 1<<indexBits, 1, 0)},
	"a byte too few in Next":   {why: "too short", say: numbers(wire.Next, 0)},
	"of none in Report":        {why: "too short", say: numbers(wire.Report)},
	"of none in Chunk":         {why: "too short", say: numbers(wire.Chunk)},
	"of none in Running":       {why: "too short", say: numbers(wire.Running)},
	"of none in Away":          {why: "too short", say: numbers(wire.Away)},
	"of one in Away":           {why: "too short", say: numbers(wire.Away, 1<<indexBits)},
	"of one in Calling":        {why: "too short", say: numbers(wire.Calling, 1<<indexBits)},
	"of one in Overstays":      {why: "too short", say: numbers(wire.Overstays, 1)},
	"of one in Lost":           {why: "too short", say: numbers(wire.Lost, 1)},
	"of one in Span":           {why: "too short", say: numbers(wire.Span, 1<<indexBits)},
	"of none in Log":           {why: "too short", say: numbers(wire.Log)},
	"of none in Answer":        {why: "too short", say: numbers(wire.Answer)},
	"a number without an end":  {why: "too short", say: raw(frameOf(wire.Next, bytes.Repeat([]byte{255}, 11)...)...)},
}

// byCalls sends bytes by the connection of calls. The broker may close it meanwhile.
func byCalls(text []byte) func(*fake, *wire.Attempt) {
	return func(f *fake, _ *wire.Attempt) { _, _ = f.calls.Write(text) }
}

// repeated says something so often.
func repeated(n int, say func(*fake, *wire.Attempt)) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) {
		for range n {
			say(f, a)
		}
	}
}

// spans sends a text as a span of the attempt.
func spans(text string) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) {
		f.say(wire.Span, func(w *wire.Writer) { w.Uint(a.ID); w.Text(text) })
	}
}
