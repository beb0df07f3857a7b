package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// fromProcess is the answer of one process, which also names the others that it knows, and the last ones that left.
type fromProcess interface {
	from() (self Member, known []Member, left []string)
}

// askEach asks all processes of the fleet, and waits at most that long for those that another process has named.
// missing are processes that others know and that have not answered: they may be of an older release, or refuse. If all
// refuse, the error is that of one of them. nats.ErrNoResponders means that no process answers.
func askEach[A fromProcess](ctx context.Context, c *Client, endpoint string, request any,
	wait time.Duration) (answers []A, missing []Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	data, err := encodeJSON(request)
	if err != nil {
		return nil, nil, err
	}
	question := c.message(endpoint, data)
	question.Reply = c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(question.Reply)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishMsg(question); err != nil {
		return nil, nil, err
	}
	awaited, gone := map[string]Member{}, map[string]bool{}
	var refusal error
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, nil, err
		case err != nil && len(answers) == 0:
			return nil, nil, cmp.Or(refusal, err)
		case err != nil: // some have not answered
			for _, p := range awaited {
				missing = append(missing, p)
			}
			return answers, missing, nil
		}
		var one A
		if no := refusedBy(m); no != nil {
			refusal = no
			continue
		}
		if json.Unmarshal(m.Data, &one) != nil {
			continue
		}
		self, known, left := one.from()
		for _, id := range left {
			gone[id] = true
			delete(awaited, id)
		}
		for _, p := range known {
			if !gone[p.ID] {
				awaited[p.ID] = p
			}
		}
		answers, gone[self.ID] = append(answers, one), true
		if delete(awaited, self.ID); len(awaited) == 0 {
			return answers, nil, nil
		}
	}
}

// Settings are the part of the configuration that bounds workers. All processes of a fleet have the same.
type Settings struct {
	AllowPrivateAddresses []string `json:"allowPrivateAddresses"`
	// Compilers are those of V8 in the process. "" = an earlier release, which has all.
	Compilers workers.Compilers `json:"compilers,omitempty"`
	// Cell is that of owners whose policy has none. "" = an earlier release, which has no cells.
	Cell workers.Cell `json:"cell,omitempty"`
}

func (s *Server) settings(context.Context, None) (Settings, error) {
	return Settings{append([]string{}, s.cfg.AllowPrivateAddresses...), s.cfg.Compilers, s.cfg.Cell}, nil
}

// Member is a process of the fleet.
type Member struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// ActiveVersion is the version of a worker that a process runs.
type ActiveVersion struct {
	Member
	Version string `json:"version"`          // the version that runs here; empty: none
	Number  int    `json:"number,omitempty"` // number of the version; a later version has a higher one
	// Deployment is the number of the deployment that is in effect here. Earlier releases do not tell it.
	Deployment int `json:"deployment,omitempty"`
	// Processes are all processes of the fleet that this one knows, including itself.
	Processes []Member `json:"processes"`
	// Left are the IDs of the last processes that reported that they leave.
	Left []string `json:"left,omitempty"`
}

// activeVersion reports which version of a worker this process runs, and which other processes there are.
func (s *Server) activeVersion(_ context.Context, r WorkerName) (ActiveVersion, error) {
	owner, name, err := r.parse()
	if err != nil {
		return ActiveVersion{}, err
	}
	in := s.cfg.Process.Installed(owner, name)
	self, all, left := s.cfg.Process.Members()
	answer := ActiveVersion{Member: self, Deployment: in.Deployment.Number, Processes: all, Left: left}
	if w := in.Active(); w != nil {
		answer.Version, answer.Number = w.Version, w.Number
	}
	return answer, nil
}

// Drain names the processes that should drain and end.
type Drain struct {
	Node string `json:"node"`
	All  bool   `json:"all"`
}

// Draining is the answer of a process that drains.
type Draining struct {
	Draining  bool   `json:"draining"`
	Node      string `json:"node"`
	TimeoutMs int64  `json:"timeoutMs"` // time limit of running events
}

// drain makes this process drain and end if the request names it.
func (s *Server) drain(_ context.Context, r Drain) (Draining, error) {
	if r.All == (r.Node != "") {
		return Draining{}, refused("which process? Name its node, as pool tells it, or say all")
	}
	if !r.All && r.Node != s.node {
		return Draining{}, errNotMeant
	}
	// Draining takes longer than this, so the answer is sent before the connection closes.
	time.AfterFunc(10*time.Millisecond, s.cfg.Process.Drain)
	return Draining{true, s.node, s.cfg.DrainTimeout.Milliseconds()}, nil
}

const bye = "bye "

// MembersSubject is where the processes of a fleet announce themselves.
func MembersSubject(prefix string) string { return prefix + ".control.members" }

// ParseMember parses the announcement of a process: its ID, a space and its node, after "bye " when it leaves. A
// process of an earlier binary sends no node; then ok is false.
func ParseMember(text string) (m Member, left, ok bool) {
	text, left = strings.CutPrefix(text, bye)
	m.ID, m.Node, ok = strings.Cut(text, " ")
	return m, left, ok
}

// Hello is the message that a process sends while it is there.
func (m Member) Hello() string { return m.ID + " " + m.Node }

// Bye is the message that a process sends when it leaves.
func (m Member) Bye() string { return bye + m.Hello() }
