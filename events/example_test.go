package events_test

import (
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// A program in Go that publishes events needs package client. This is what other clients do.
func ExampleSubjects() {
	s := events.Subjects(events.DefaultPrefix)
	fmt.Println(s.Event(events.Fetch, "acme", "hello"))
	fmt.Println(s.Logs("acme", "hello"))
	// Output:
	// pinwheel.events.fetch.acme.hello
	// pinwheel.logs.acme.hello
}

func ExampleDecoder_Decode() {
	// A message as the stream of events has it. Tokens of its subject are lane, kind, owner and worker.
	stored := events.Origin{Stream: events.StreamEvents, Subject: "pinwheel.events.3.task.acme.resize", Seq: 17}
	headers := events.Header{events.HeaderEventID: {"picture-1"}, events.HeaderReplyTo: {"_INBOX.x"}}

	d := events.Decoder{Subjects: events.DefaultPrefix, ReplyPrefixes: []string{"_INBOX."}}
	e, failure := d.Decode(stored, headers, []byte(`{"width":100}`), time.Now())
	fmt.Println(e.Kind, e.Target(), e.ID, failure)

	_, failure = d.Decode(stored, events.Header{events.HeaderDeadline: {"tomorrow"}}, nil, time.Now())
	fmt.Println(failure.Reason)
	// Output:
	// task acme/resize picture-1 <nil>
	// malformed
}

func ExampleDecodeReply() {
	message := (&events.Reply{Status: 200, Headers: []string{"content-type", "text/plain"}, Body: []byte("hello"),
		EventID: "e1", Attempt: 1}).Encode()
	reply, err := events.DecodeReply(message, []byte("hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Status, reply.Headers, string(reply.Body), reply.Failure)
	// Output: 200 [content-type text/plain] hello <nil>
}

func ExampleSpec() {
	spec := workers.Spec{
		Mode:     workers.Shared,
		Bindings: workers.Bindings{Vars: map[string]string{"GREETING": "hello"}, Queues: map[string]string{"JOBS": "report"}},
		Limits:   workers.Limits{HeapMB: 64},
	}
	for _, b := range spec.Env() {
		fmt.Println(b.Kind, b.Name, b.Value)
	}
	fmt.Println(spec.Validate(), spec.OrDefault().Limits.CPU.Duration())
	spec.Limits.HeapMB = 4096
	fmt.Println(spec.Validate())
	// Output:
	// vars GREETING hello
	// queues JOBS report
	// <nil> 50ms
	// limits.heapMB is 4096: it is 8 to 512
}
