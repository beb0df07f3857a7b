package bindings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const (
	maxNATSBody    = 1 << 20 // bytes; nats-server may take less
	maxNATSHeaders = 16 << 10
	maxNATSReply   = 1 << 20         // bytes with headers
	defaultRequest = 5 * time.Second // how long an answer may take
)

// natsCalls publishes and asks for handlers, by the fleet's connection and with its rights. So a subject needs the
// grant of the owner's policy, as it is now, and that of the worker's manifest, and is never one of NATS or of the
// fleet.
type natsCalls struct{ backend }

func (n *natsCalls) method(name string) method {
	switch name {
	case "publish":
		return n.publish
	case "request":
		return n.request
	}
	return nil
}

// publish has the arguments subject, "js" to wait until a stream has stored the message or "", and the headers: name,
// value, name, value. It answers with stream and sequence number of a stored message.
func (n *natsCalls) publish(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	m, mode, err := n.message(c,
		func(p workers.Policy, s workers.NATSSubjects) (owner, worker []string) {
			return p.NATSPublish, s.Publish
		})
	if err != nil {
		return lifecycle.Answer{}, err
	}
	if mode == "" {
		if err := n.nc.PublishMsg(m); err != nil {
			return lifecycle.Answer{}, failedNATS(err)
		}
		return lifecycle.Answer{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, defaultRequest) // no stream may have the subject
	defer cancel()
	ack, err := n.js.PublishMsg(ctx, m)
	if err != nil {
		return lifecycle.Answer{}, failedNATS(err)
	}
	return lifecycle.Answer{Texts: []string{ack.Stream, strconv.FormatUint(ack.Sequence, 10)}}, nil
}

// request has the arguments subject, timeout (milliseconds, "" = the default) and headers. It answers with the headers
// and the body of the reply.
func (n *natsCalls) request(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	m, timeout, err := n.message(c,
		func(p workers.Policy, s workers.NATSSubjects) (owner, worker []string) {
			return p.NATSRequest, s.Request
		})
	if err != nil {
		return lifecycle.Answer{}, err
	}
	wait := defaultRequest
	if timeout != "" {
		ms, err := strconv.ParseFloat(timeout, 64)
		if err != nil || !(ms > 0 && ms <= maxRequest) {
			return lifecycle.Answer{}, fmt.Errorf("400 timeoutMs is %.40s: it is above 0, and at most %d", timeout, maxRequest)
		}
		wait = time.Duration(ms * float64(time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	reply, err := n.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return lifecycle.Answer{}, failedNATS(err)
	}
	size := reply.Size()
	if size > maxNATSReply {
		return lifecycle.Answer{}, fmt.Errorf("413 the reply has %d bytes: at most %d", size, maxNATSReply)
	}
	if err := c.Hold(size); err != nil {
		return lifecycle.Answer{}, fmt.Errorf("429 %w", err)
	}
	answer := lifecycle.Answer{Body: reply.Data}
	for name, values := range reply.Header {
		for _, value := range values {
			if isHeader(name, value) {
				answer.Texts = append(answer.Texts, name, value)
			}
		}
	}
	return answer, nil
}

// maxRequest is the longest timeout, milliseconds. A run has a bound of its own.
const maxRequest = 15 * 60 * 1000

// message makes the message of a call, and returns its second argument too. lists picks what the owner and the worker
// may use.
func (n *natsCalls) message(c *lifecycle.Call,
	lists func(workers.Policy, workers.NATSSubjects) (owner, worker []string)) (*nats.Msg, string, error) {
	if len(c.Texts) < 2 || len(c.Texts)%2 != 0 {
		return nil, "", fmt.Errorf("400 %d arguments", len(c.Texts))
	}
	var granted workers.NATSSubjects
	if err := json.Unmarshal([]byte(c.Binding.Value), &granted); err != nil {
		return nil, "", fmt.Errorf("500 the binding: %w", err)
	}
	subject := c.Texts[0]
	owner, worker := lists(n.policy(c.Owner), granted)
	switch err := workers.CheckSubject(subject); {
	case err != nil:
		return nil, "", fmt.Errorf("400 %w", err)
	case n.reserved(subject):
		return nil, "", fmt.Errorf("403 subject %.80q is one of the fleet's own", subject)
	case !workers.Covers(worker, subject):
		return nil, "", fmt.Errorf("403 subject %.80q is none of those that the manifest names for %s", subject, c.Binding.Name)
	case !workers.Covers(owner, subject):
		return nil, "", fmt.Errorf("403 subject %.80q is not granted to the owner", subject)
	case len(c.Body) > maxNATSBody:
		return nil, "", fmt.Errorf("413 the body has %d bytes: at most %d", len(c.Body), maxNATSBody)
	}
	m := nats.NewMsg(subject)
	m.Data = c.Body
	size := 0
	for i := 2; i+1 < len(c.Texts); i += 2 {
		name, value := c.Texts[i], c.Texts[i+1]
		switch size += len(name) + len(value) + len(": \r\n"); {
		case !isHeader(name, value):
			return nil, "", fmt.Errorf("400 header %.80q is not allowed: a name is a token, and a value has no line breaks", name)
		case Steers(name):
			return nil, "", fmt.Errorf("403 header %s: a handler may not set it", name)
		case size > maxNATSHeaders:
			return nil, "", fmt.Errorf("413 the headers have more than %d bytes", maxNATSHeaders)
		}
		m.Header[name] = append(m.Header[name], value)
	}
	if c.Trace != nil {
		c.Trace.SetIn(events.Header(m.Header))
	}
	return m, c.Texts[1], nil
}

// reserved reports whether a subject is one of the fleet, or where somebody waits for replies of the fleet.
// workers.CheckSubject refuses those of NATS.
func (n *natsCalls) reserved(subject string) bool {
	prefix := n.cfg.Prefix + "."
	if strings.HasPrefix(subject+".", prefix) {
		return true
	}
	for _, p := range n.cfg.ReplyPrefixes {
		before, _, _ := strings.Cut(p, "{") // {owner} stands for any owner
		if before != "" && strings.HasPrefix(subject+".", before) {
			return true
		}
	}
	return false
}

// isHeader reports whether a message can have this header.
func isHeader(name, value string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c > '~' || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return name != "" && !strings.ContainsAny(value, "\r\n\x00")
}

// Steers reports whether a header controls NATS or Pinwheel. A handler may not set such a header.
func Steers(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "nats-") || strings.HasPrefix(lower, "dead-") || lower == "status" ||
		lower == "description" || strings.EqualFold(name, events.HeaderReplyTo)
}

// failedNATS is err for the author of a handler.
func failedNATS(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return errors.New("503 no subscriber answers at this subject")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return errors.New("504 there was no answer in time")
	case errors.Is(err, nats.ErrMaxPayload):
		return errors.New("413 the message is larger than the nats-server takes")
	}
	return fmt.Errorf("500 %w", err)
}
