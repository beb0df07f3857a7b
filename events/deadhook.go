package events

import (
	"fmt"
	"strings"
)

// DeadHook says where the dead letters of a worker go: to another worker of the same owner, as a task event, or to a
// subject. The zero DeadHook sends them nowhere.
type DeadHook struct {
	Worker  string `json:"worker,omitempty"`
	Subject string `json:"subject,omitempty"`
	// JetStream says that a stream has Subject: the letter is published until the stream acknowledges it. Otherwise it
	// is a core NATS publish.
	JetStream bool `json:"jetStream,omitempty"`
}

// Validate returns an error that names the field that is wrong and what is allowed. The configuration of the fleet
// decides whether it publishes to the subject.
func (h DeadHook) Validate() error {
	switch {
	case (h.Worker == "") == (h.Subject == ""):
		return fmt.Errorf("onDeadLetter has either a worker or a subject")
	case h.JetStream && h.Subject == "":
		return fmt.Errorf("onDeadLetter.jetStream is true: it goes with a subject")
	case h.Worker != "":
		if err := CheckName("worker", h.Worker); err != nil {
			return fmt.Errorf("onDeadLetter.worker is no worker: %w", err)
		}
	case !validPublishSubject(h.Subject) || strings.HasPrefix(h.Subject, "$"):
		return fmt.Errorf("onDeadLetter.subject is %q: it is a subject that one can publish to, and does not begin with $", h.Subject)
	}
	return nil
}

// String is the hook as the header of a dead letter has it: "worker:NAME", "subject:SUBJECT", "jetstream:SUBJECT" or
// "".
func (h DeadHook) String() string {
	switch {
	case h.Worker != "":
		return "worker:" + h.Worker
	case h.JetStream:
		return "jetstream:" + h.Subject
	case h.Subject != "":
		return "subject:" + h.Subject
	}
	return ""
}

// parseDeadHook is the inverse of String.
func parseDeadHook(s string) (h DeadHook, err error) {
	if s == "" {
		return h, nil
	}
	what, value, _ := strings.Cut(s, ":")
	switch what {
	case "worker":
		h.Worker = value
	case "subject":
		h.Subject = value
	case "jetstream":
		h.Subject, h.JetStream = value, true
	default:
		return h, fmt.Errorf("%q: it is worker:NAME, subject:SUBJECT or jetstream:SUBJECT", s)
	}
	return h, h.Validate()
}
