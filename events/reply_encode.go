package events

import "strconv"

const (
	// keptNames is the most header names that an encoder keeps, keptName the most bytes of one.
	keptNames, keptName = 256, 64
	// keptHeaders is the most headers of a map that is used again. A map that was larger is slow to clear.
	keptHeaders = 64
)

// ReplyEncoder makes the headers of replies, one after the other, and uses its memory again. The zero encoder is
// usable. One goroutine may use it.
type ReplyEncoder struct {
	header Header
	values []string
	text   []byte
	names  map[string]string // the name of an HTTP header in a message, by the name without prefix
}

// Encode makes the headers of the reply's message. They are valid until the next call.
func (x *ReplyEncoder) Encode(r *Reply) Header {
	if x.header == nil || len(x.header) > keptHeaders {
		x.header = make(Header, 6+len(r.Headers)/2)
	}
	clear(x.header)
	clear(x.values)
	x.values = x.values[:0]
	x.numbers(r)
	x.set(HeaderEventID, r.EventID)
	if r.Version != "" {
		x.set(HeaderWorkerVersion, r.Version)
	}
	if r.CreditSubject != "" {
		x.set(HeaderBodyCredit, r.CreditSubject)
		x.set(HeaderBodySeq, "0")
	}
	if r.Failure != nil {
		x.set(HeaderError, oneLine(r.Failure.Error()))
	}
	for i := 0; i+1 < len(r.Headers); i += 2 {
		x.add(x.name(r.Headers[i]), oneLine(r.Headers[i+1]))
	}
	return x.header
}

// numbers sets the headers that are numbers. Their values share one string.
func (x *ReplyEncoder) numbers(r *Reply) {
	b := strconv.AppendInt(x.text[:0], int64(r.Attempt), 10)
	attempt := len(b)
	b = strconv.AppendFloat(b, float64(r.Duration)/1e6, 'f', 3, 64)
	duration := len(b)
	if r.Status != 0 {
		b = strconv.AppendInt(b, int64(r.Status), 10)
	}
	x.text = b
	all := string(b)
	x.set(HeaderAttempt, all[:attempt])
	x.set(HeaderDuration, all[attempt:duration])
	if r.Status != 0 {
		x.set(HeaderStatus, all[duration:])
	}
}

func (x *ReplyEncoder) set(name, value string) {
	n := len(x.values)
	x.values = append(x.values, value)
	x.header[name] = x.values[n : n+1 : n+1] // the array may grow later: this is the one of now
}

func (x *ReplyEncoder) add(name, value string) {
	if before := x.header[name]; before != nil {
		x.header[name] = append(before, value)
		return
	}
	x.set(name, value)
}

// name is the name of an HTTP header in a message. It makes common names once.
func (x *ReplyEncoder) name(short string) string {
	if long, ok := x.names[short]; ok {
		return long
	}
	long := HeaderHTTPPrefix + short
	if len(long) > keptName {
		return long
	}
	if x.names == nil || len(x.names) == keptNames {
		x.names = make(map[string]string)
	}
	x.names[long[len(HeaderHTTPPrefix):]] = long
	return long
}
