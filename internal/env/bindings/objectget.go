package bindings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// fromLeader reports whether a call must read from the leader: the other copies of the stream may be behind.
func fromLeader(b *bucket, c *lifecycle.Call) bool { return b.copies > 1 && c.Wrote.Load() }

// head has the argument key, and answers with the object; with nothing if it is not there.
func (o *objects) head(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b, err := o.open(ctx, c, 1)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	n, err := object(c, c.Texts[0])
	if err != nil {
		return lifecycle.Answer{}, err
	}
	v, err := o.read(ctx, n, fromLeader(b, c))
	if err != nil {
		return lifecycle.Answer{}, o.failed(c, err)
	}
	if v = v.there(); v == nil {
		return lifecycle.Answer{}, nil
	}
	return lifecycle.Answer{Texts: []string{v.describe(c.Texts[0], &span{0, v.Size}, true, true)}}, nil
}

// get has the arguments key, range and the condition. It answers with nothing if the object is not there; with the
// object if the condition is not met; otherwise with the object, the text "body", and the bytes.
func (o *objects) get(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b, err := o.open(ctx, c, 2+conditionTexts)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	n, err := object(c, c.Texts[0])
	if err != nil {
		return lifecycle.Answer{}, err
	}
	cond, err := readCondition(c.Texts[2:])
	if err != nil {
		return lifecycle.Answer{}, err
	}
	held := 0
	// A put at the same time takes the chunks away: then there is a newer version to read. Copies that are behind may
	// lack some: then the leader has them.
	leader, missing := fromLeader(b, c), ""
	for range maxTries {
		v, err := o.read(ctx, n, leader)
		if err != nil {
			return lifecycle.Answer{}, o.failed(c, err)
		}
		if v = v.there(); v == nil {
			return lifecycle.Answer{}, nil
		}
		if !cond.met(v) {
			return lifecycle.Answer{Texts: []string{v.describe(c.Texts[0], &span{0, v.Size}, true, true)}}, nil
		}
		part, err := readRange(c.Texts[1], v.Size)
		if err != nil {
			return lifecycle.Answer{}, err
		}
		if part.Length > maxObject {
			return lifecycle.Answer{}, fmt.Errorf("%d bytes are too many at once: name a range of at most %d", part.Length, maxObject)
		}
		if more := int(part.Length) - held; more > 0 {
			if err := c.Hold(more); err != nil {
				return lifecycle.Answer{}, err
			}
			held += more
		}
		data, err := o.data(ctx, n, v, part, leader)
		switch {
		case errors.Is(err, errMissing) && missing == v.NUID:
			return lifecycle.Answer{}, errors.New("500 the object is damaged: a part of its data is missing")
		case errors.Is(err, errMissing):
			if leader {
				missing = v.NUID
			}
			leader = true
			continue
		case err != nil:
			return lifecycle.Answer{}, o.failed(c, err)
		}
		return lifecycle.Answer{Texts: []string{v.describe(c.Texts[0], &part, true, true), "body"}, Body: data}, nil
	}
	return lifecycle.Answer{}, errors.New("503 the object changes all the time")
}

// errMissing is the error when a chunk of an object is not there.
var errMissing = errors.New("a chunk is missing")

// data reads a part of a version.
func (o *objects) data(ctx context.Context, n named, v *version, part span, leader bool) ([]byte, error) {
	if part.Length == 0 {
		return nil, nil
	}
	out := bytes.NewBuffer(make([]byte, 0, part.Length))
	first, before := v.chunkAt(part.Offset)
	skip := part.Offset - before
	for seq := first; uint64(out.Len()) < part.Length; {
		m, err := o.chunk(ctx, n, v.NUID, seq, leader)
		// of a stream that was copied
		if seq == first && before > 0 && (errors.Is(err, errMissing) || err == nil && m.Sequence != first) {
			seq, first, skip, before = 1, 1, part.Offset, 0
			continue
		}
		if err != nil {
			return nil, err
		}
		data := m.Data
		seq = m.Sequence + 1
		if size := uint64(len(data)); skip >= size {
			skip -= size
			continue
		}
		data = data[skip:]
		skip = 0
		out.Write(data[:min(uint64(len(data)), part.Length-uint64(out.Len()))])
	}
	return out.Bytes(), nil
}

// chunk reads the first chunk from a sequence on.
func (o *objects) chunk(ctx context.Context, n named, id string, seq uint64, leader bool) (*stored.Message, error) {
	r := stored.Request{Seq: seq, Next: n.chunks(id)}
	var m *stored.Message
	var err error
	if leader {
		m, err = stored.Get(ctx, o.nc, n.stream(), r)
	} else {
		m, err = stored.Direct(ctx, o.nc, n.stream(), r)
	}
	if errors.Is(err, stored.ErrNone) {
		err = errMissing
	}
	return m, err
}

// chunkAt returns the sequence of the chunk that has a byte of the object, and how many bytes are before that chunk. If
// the version does not say where its chunks are, it is the first one.
func (v *version) chunkAt(offset uint64) (seq, before uint64) {
	left := offset / chunkBytes
	for run := range strings.SplitSeq(v.Headers.Get(headerChunks), ",") {
		first, count, ok := strings.Cut(run, "+")
		start, err := strconv.ParseUint(first, 10, 64)
		number, err2 := strconv.ParseUint(count, 10, 32)
		if !ok || err != nil || err2 != nil {
			return 1, 0
		}
		if left < number {
			return start + left, offset / chunkBytes * chunkBytes
		}
		left -= number
	}
	return 1, 0
}

// runs is the text of headerChunks.
func runs(sequences []uint64) string {
	var b strings.Builder
	for i := 0; i < len(sequences); {
		n := 1
		for i+n < len(sequences) && sequences[i+n] == sequences[i]+uint64(n) {
			n++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d+%d", sequences[i], n)
		i += n
	}
	return b.String()
}
