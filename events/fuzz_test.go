package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// fuzzHeader makes headers of one text: a line each, "name: value".
func fuzzHeader(text string) Header {
	h := make(Header)
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h[name] = append(h[name], value)
		}
	}
	return h
}

func FuzzDecode(f *testing.F) {
	f.Add("pinwheel.events.3.fetch.acme.hello", "Reply-To: _INBOX.a\nHttp-Url: /a?b\nHttp-Header-X: y\nHttp-Method: PUT", []byte("x"))
	f.Add("pinwheel.events.0.task.a.b", "Content-Type: application/json\nDeadline: 2026-01-02T15:04:05Z\nEvent-Id: 1", []byte("{}"))
	f.Add("pinwheel.events.15.scheduled.a.b", "Scheduled-Time: 1\nCron: * * * * *\nNats-Msg-Id: m", []byte(nil))
	f.Add("pinwheel.events.3.fetch.a", "Status: 409\nreply-to: $JS.x\nReply-To: pinwheel.x", []byte(nil))
	f.Fuzz(func(t *testing.T, subject, header string, body []byte) {
		h := fuzzHeader(header)
		e, failure := testDecoder.Decode(Origin{Stream: "S", Subject: subject, Seq: 7}, h, body, time.Unix(1, 0))
		if e.ID == "" || len(e.ID) > MaxEventID || !utf8.ValidString(e.ID) {
			t.Fatalf("id %q", e.ID)
		}
		if e.ReplyTo != "" && (!strings.HasPrefix(e.ReplyTo, "_INBOX.") || strings.ContainsAny(e.ReplyTo, "*> \r\n\t")) {
			t.Fatalf("reply to %q", e.ReplyTo)
		}
		if len(e.HTTPHeaders)%2 != 0 || !bytes.Equal(e.Body, body) {
			t.Fatal("changed")
		}
		if failure != nil {
			if failure.Reason != ReasonMalformed || failure.Message == "" || !utf8.ValidString(failure.Message) {
				t.Fatalf("%+v", failure)
			}
		} else {
			if !ValidName(e.Owner) || !ValidName(e.Worker) || e.Kind == 0 {
				t.Fatalf("%+v is not runnable", e)
			}
			if e.Kind == Fetch && (e.Method == "" || !strings.HasPrefix(strings.ToLower(e.URL), "http")) {
				t.Fatalf("%+v", e)
			}
		}
		// Whatever it is, it can be a dead letter and come back.
		d := NewDeadLetter(e, f2(), "", "n", 0, time.Unix(2, 0))
		if _, err := DecodeDeadLetter(1, d.Encode(), body); err != nil {
			t.Fatal(err)
		}
		if tokens := strings.Split(Subjects(DefaultPrefix).Dead(e, ReasonMalformed), "."); len(tokens) != 8 {
			t.Fatalf("%q", tokens)
		}
	})
}

func FuzzParseAckSubject(f *testing.F) {
	f.Add("$JS.ACK.S.C.2.33.4.1700000000000000000.5")
	f.Add("$JS.ACK.hub.ACCHASH.S.C.2.33.4.1700000000000000000.5.x")
	f.Fuzz(func(t *testing.T, subject string) {
		origin, _, _, err := ParseAckSubject(subject)
		if err == nil && (!strings.HasPrefix(subject, "$JS.ACK.") || origin.Stream == "" || origin.Consumer == "" ||
			origin.Deliveries < 1) {
			t.Fatalf("%q: %+v", subject, origin)
		}
	})
}

func FuzzParseStored(f *testing.F) {
	f.Add("pinwheel.events.3.fetch.acme.hello")
	f.Add("pinwheel.events.16.fetch.acme.hello")
	f.Fuzz(func(t *testing.T, subject string) {
		lane, kind, owner, worker, ok := Subjects(DefaultPrefix).ParseStored(subject)
		if ok && (lane < 0 || lane >= Lanes || strings.Contains(kind+owner+worker, ".") || kind == "" || owner == "" ||
			worker == "") {
			t.Fatal(subject)
		}
	})
}

func FuzzParseCall(f *testing.F) {
	f.Add("pinwheel.call.fetch.acme.hello")
	f.Add("pinwheel.call.fetch.acme")
	f.Fuzz(func(t *testing.T, subject string) {
		s := Subjects(DefaultPrefix)
		k, owner, worker, err := s.ParseCall(subject)
		if err == nil && s.Call(k, owner, worker) != subject {
			t.Fatal(subject)
		}
		if owner, _, _, ok := s.ParseParked(subject); ok && !ValidName(owner) {
			t.Fatal(subject)
		}
	})
}

func FuzzParseBodyPart(f *testing.F) {
	f.Add("pinwheel.body.acme.x.0")
	f.Add("pinwheel.body.acme.x.01")
	f.Add("pinwheel.body.acme.x.end")
	f.Fuzz(func(t *testing.T, subject string) {
		s := Subjects(DefaultPrefix)
		owner, id, i, err := s.ParseBodyPart(subject)
		if err == nil && s.BodyPart(owner, id, i) != subject {
			t.Fatalf("%q is taken for part %d of %s of %s", subject, i, id, owner)
		}
	})
}

func FuzzDecodeEnd(f *testing.F) {
	for _, end := range []string{"3", "!gone", "!\xff", "-1", "1048577", ""} {
		f.Add([]byte(end))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := DecodeEnd(data)
		if err == nil && !bytes.Equal(EncodeEnd(n), data) {
			t.Fatalf("%q is taken for %d", data, n)
		}
		if err != nil && (len(err.Error()) > 2*maxEnd+200 || !utf8.ValidString(err.Error())) {
			t.Fatalf("%q: %q", data, err)
		}
		if _, err := DecodeEnd(EncodeBreak(string(data))); !errors.Is(err, ErrGivenUp) {
			t.Fatalf("%q: %v", data, err)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	f.Add("Attempt: 1\nDuration-Ms: 1.5\nHttp-Status: 200\nHttp-Header-A: b\nEvent-Id: x", []byte("x"))
	f.Add("Attempt: 2\nError: exception: boom", []byte(nil))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		r, err := DecodeReply(fuzzHeader(header), body)
		if err != nil {
			return
		}
		if r.Attempt < 0 || r.Duration < 0 || r.Status != 0 && (r.Status < 200 || r.Status > 599) || len(r.Headers)%2 != 0 {
			t.Fatalf("%+v", r)
		}
		if _, err := DecodeReply(r.Encode(), body); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDecodeDeadLetter(f *testing.F) {
	d := NewDeadLetter(&Event{Header: Header{"Nats-Msg-Id": {"1"}, "X": {"y"}}, Origin: stored("task", "a", "b")}, f2(),
		"1-a", "n", 1, time.Unix(1, 0))
	var text strings.Builder
	for name, values := range d.Encode() {
		text.WriteString(name + ": " + values[0] + "\n")
	}
	f.Add(text.String(), []byte("x"))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		d, err := DecodeDeadLetter(3, fuzzHeader(header), body)
		if err != nil {
			return
		}
		again, err := DecodeDeadLetter(3, d.Encode(), body)
		if err != nil {
			t.Fatal(err)
		}
		if again.StreamSeq != d.StreamSeq || again.Replays != d.Replays || len(again.Header) != len(d.Header) {
			t.Fatalf("%+v\n%+v", d, again)
		}
		if subject, h, err := d.Replay(DefaultPrefix, Target{}); err == nil {
			if _, _, _, ok := threeTokens(strings.TrimPrefix(subject, "pinwheel.events.")); !ok {
				t.Fatal(subject)
			}
			for name := range h {
				if serverHonoured(name) {
					t.Fatal(name)
				}
			}
		}
	})
}

func FuzzParseLetter(f *testing.F) {
	d := NewDeadLetter(&Event{Header: Header{"Nats-Msg-Id": {"1"}, "X": {"y\xff"}}, Origin: stored("task", "a", "b")},
		f2(), "1-a", "n", 1, time.Unix(1, 0))
	d.Hook, d.History, d.Body = DeadHook{Worker: "w"}, []FailedRun{{At: time.Unix(2, 0), Attempt: 1}}, []byte{0xff}
	for _, l := range []*DeadLetter{d, {Failure: *f2(), Stream: "S", StreamSeq: 1, At: time.Unix(1, 0),
		FirstAt: time.Unix(1, 0), Body: []byte("é")}} {
		text, err := json.Marshal(l.JSON(true))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := ParseLetter(text)
		if err != nil {
			return
		}
		if subject := Subjects(DefaultPrefix).DeadLetter(d, d.Failure.Reason); !validPublishSubject(subject) &&
			len(subject) < 1024 {
			t.Fatalf("%q", subject)
		}
		again, err := json.Marshal(d.JSON(true))
		if err != nil {
			t.Skip(err) // a year that JSON has not
		}
		got, err := ParseLetter(again)
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		if got.Identity() != d.Identity() || string(got.Body) != string(d.Body) || len(got.Encode()) != len(d.Encode()) {
			t.Fatalf("%+v\n%+v", d, got)
		}
	})
}

// A header block that is written by Header.Block is read as the same headers.
func FuzzParseBlock(f *testing.F) {
	f.Add([]byte("NATS/1.0\r\na/b: c\r\nno colon\r\n: no name\r\nX:  y \r\n\r\nbehind it"))
	f.Add([]byte("X: y"))
	f.Fuzz(func(t *testing.T, block []byte) {
		h := ParseBlock(block)
		if again := ParseBlock(h.Block()); !maps.EqualFunc(h, again, slices.Equal) {
			t.Fatalf("%q is read as %q, and then as %q", block, h, again)
		}
		d := &DeadLetter{Kind: "task", StreamSeq: 1, At: time.Unix(2, 0), FirstAt: time.Unix(1, 0), Failure: *f2(),
			Body: []byte("body")}
		d.KeepBlock(h.Block())
		got, err := DecodeDeadLetter(1, d.Encode(), d.Data())
		if err != nil || got.Kind != "task" || !bytes.Equal(got.Block, d.Block) || !bytes.Equal(got.Body, d.Body) ||
			!maps.EqualFunc(h, got.Header, slices.Equal) {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := got.Header.CheckWritable(); (err == nil) == (d.Header.CheckWritable() != nil) {
			t.Fatal(err)
		}
	})
}
