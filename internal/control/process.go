package control

import (
	"context"
	"time"
)

// pool answers like GET /admin/pool. It also answers a request that it cannot decode, because earlier clients sent
// arbitrary data.
func pool(_ context.Context, s *Server, _ []byte) (any, error) { return s.cfg.Process.Stats(), nil }

// Settings are the part of the configuration that a deploy needs. All processes of a fleet have the same.
type Settings struct {
	AllowPrivateAddresses []string `json:"allowPrivateAddresses"`
}

func (s *Server) settings(context.Context, None) (Settings, error) {
	return Settings{append([]string{}, s.cfg.AllowPrivateAddresses...)}, nil
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
