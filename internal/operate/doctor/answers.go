package doctor

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// strangerWait is how long other clients have to answer.
const strangerWait = 300 * time.Millisecond

// answers looks for clients that answer what is published to the subjects of streams. Publishers take the first answer
// for that of the stream. What it publishes is for a stream that does not exist, so that no stream stores it.
func (p *checker) answers(ctx context.Context, all []found) {
	inbox := p.NC.NewInbox()
	sub, err := p.NC.SubscribeSync(inbox + ".*")
	if err != nil {
		return // the check permissions reports it
	}
	defer func() { _ = sub.Unsubscribe() }()
	asked := map[string]string{} // subjects by the reply subject
	for _, f := range all {
		if f.Resource.Consumer != nil {
			continue
		}
		for _, subject := range f.Finding.Stream.Config.Subjects {
			m := nats.NewMsg(strings.NewReplacer("*", "doctor", ">", "doctor").Replace(subject))
			m.Reply = inbox + "." + strings.TrimPrefix(p.NC.NewInbox(), "_INBOX.")
			m.Header.Set("Nats-Expected-Stream", "doctor")
			asked[m.Reply] = m.Subject
			_ = p.NC.PublishMsg(m) // not connected: there are no answers
		}
	}
	ctx, cancel := context.WithTimeout(ctx, strangerWait)
	defer cancel()
	named := map[string]bool{}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return
		}
		subject := asked[m.Subject]
		if bytes.HasPrefix(m.Data, []byte(`{"error":`)) || m.Header.Get("Status") == "503" || named[subject] {
			continue // of a stream, or of the server
		}
		named[subject] = true
		p.bad("answers", "find the client that subscribes to this subject and acknowledges or answers what it gets, and end it: "+
			"'nats server request connections --subscriptions' lists subscriptions",
			"a client that is not Pinwheel's answers %.40q to what is published to %s: publishers and deploys take that for the stream's answer",
			m.Data, subject)
	}
}
