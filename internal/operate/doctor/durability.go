package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Sync says when the servers write acknowledged data to disk. The zero Sync means that this is unknown.
type Sync struct {
	Known    bool
	Always   bool          // before they acknowledge
	Interval time.Duration // otherwise at most this much later, on the slowest server
	Servers  int           // number of servers that answered
	From     string        // source of the answer
	Stored   uint64        // bytes stored by the fullest server
	Most     int64         // limit of that server in bytes
	// Reserved is how many bytes the server with the least left has reserved for streams, and Reservable how many it may.
	Reserved   uint64
	Reservable int64
}

// DefaultInterval is the default of nats-server.
const DefaultInterval = 2 * time.Minute

// jsz is the part of nats-server's JetStream report that Pinwheel reads.
type jsz struct {
	Disabled bool `json:"disabled"`
	Config   struct {
		SyncInterval time.Duration `json:"sync_interval"`
		SyncAlways   bool          `json:"sync_always"`
		MaxStore     int64         `json:"max_storage"`
	} `json:"config"`
	Store    uint64 `json:"storage"`
	Reserved uint64 `json:"reserved_storage"`
}

// fuller returns the pair of used bytes and limit, a or b, with the larger part used. A limit of 0 is unknown.
func fuller(a uint64, ofA int64, b uint64, ofB int64) (used uint64, of int64) {
	if ofB > 0 && (ofA == 0 || float64(b)/float64(ofB) > float64(a)/float64(ofA)) {
		return b, ofB
	}
	return a, ofA
}

// and combines s with the answer of one more server.
func (s Sync) and(z jsz, from string) Sync {
	if z.Disabled {
		return s
	}
	one := Sync{Known: true, Always: z.Config.SyncAlways, Interval: z.Config.SyncInterval, Servers: s.Servers + 1,
		From: from}
	if s.Known {
		one.Always = one.Always && s.Always
		one.Interval = max(one.Interval, s.Interval)
	}
	one.Stored, one.Most = fuller(s.Stored, s.Most, z.Store, z.Config.MaxStore)
	one.Reserved, one.Reservable = fuller(s.Reserved, s.Reservable, z.Reserved, z.Config.MaxStore)
	return one
}

// AskSync asks the monitoring ports of all servers (URLs like http://host:8222). Without any URL it asks the servers
// over NATS. They answer only users that may publish requests to $SYS. The error says why there is no answer.
func AskSync(ctx context.Context, nc *nats.Conn, monitors []string) (s Sync, err error) {
	if len(monitors) > 0 {
		for _, m := range monitors {
			z, err := askMonitor(ctx, m)
			if err != nil {
				return Sync{}, err
			}
			s = s.and(z, "the monitoring port")
		}
		if servers := len(nc.Servers()); s.Servers < servers {
			return Sync{}, fmt.Errorf("%d of the %d servers of the cluster have been asked: name the monitoring port of each", s.Servers, servers)
		}
		return s, nil
	}
	answers, err := gather(ctx, nc, "$SYS.REQ.SERVER.PING.JSZ", []byte("{}"), answerWait)
	if err != nil {
		return Sync{}, err
	}
	for _, m := range answers {
		var a struct {
			Data *jsz `json:"data"`
		}
		if json.Unmarshal(m.Data, &a) == nil && a.Data != nil {
			s = s.and(*a.Data, "$SYS")
		}
	}
	if !s.Known {
		return s, errors.New("this user may not ask $SYS, and PINWHEEL_NATS_MONITOR names no monitoring port")
	}
	return s, nil
}

func askMonitor(ctx context.Context, url string) (z jsz, err error) {
	name, err := getMonitor(ctx, url, "/jsz", http.StatusOK, &z)
	if err == nil && z.Disabled {
		err = fmt.Errorf("%s: that server has no JetStream", name)
	}
	return z, err
}

// getMonitor reads a page of a monitoring port. It accepts the status 200, and the status also. name is the name of the
// page, for messages.
func getMonitor(ctx context.Context, url, page string, also int, into any) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+page, nil)
	if err != nil {
		return url, err
	}
	name = req.URL.Redacted()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return name, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != also {
		return name, fmt.Errorf("%s answers %s", name, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return name, fmt.Errorf("%s: %w", name, err)
	}
	return name, nil
}

// gather sends a request that every process or server answers. It waits as long as first for the first answer, and
// returns the answers that arrive within answerWait of that one.
func gather(
	ctx context.Context, nc *nats.Conn, subject string, body []byte, first time.Duration,
) ([]*nats.Msg, error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(subject, inbox, body); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := time.AfterFunc(first, cancel)
	defer over.Stop()
	var list []*nats.Msg
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return list, nil // the time is over, or the subscription ended
		}
		if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
			return nil, nil
		}
		if list = append(list, m); len(list) == 1 {
			over.Reset(answerWait)
		}
	}
}

// Words describes which failures a stored event survives with so many replicas, and which it does not. It claims only
// what is known.
func (s Sync) Words(replicas int) string {
	lag := "at a time that is not known here"
	switch {
	case s.Known && s.Always:
		if replicas > 1 {
			return fmt.Sprintf("%d copies, most of them on disk before the publisher gets an ack: survives power cuts, and the loss of %d of the servers", replicas, replicas/2)
		}
		return "one copy, on disk before the publisher gets an ack: survives a power cut, but not the loss of that disk"
	case s.Known:
		lag = "at most " + s.Interval.String() + " later"
	}
	if replicas > 1 {
		return fmt.Sprintf("%d copies, most of them written to their operating systems before the publisher gets an ack, and to disk %s: survives crashes, and the loss of %d of the servers, but not a power cut of more at once",
			replicas, lag, replicas/2)
	}
	return fmt.Sprintf("one copy, written to the operating system before the publisher gets an ack, and to disk %s: survives crashes of processes, but not a power cut", lag)
}

// Mode describes the mode in one word.
func (s Sync) Mode() string {
	switch {
	case !s.Known:
		return "unknown"
	case s.Always:
		return "fsync"
	}
	return "default"
}
