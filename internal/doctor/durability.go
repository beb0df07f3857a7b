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

// Sync is when the servers write to disk what they have acknowledged. The zero Sync says that nobody knows.
type Sync struct {
	Known    bool
	Always   bool          // before they acknowledge
	Interval time.Duration // or at most this much later, on the slowest of them
	Servers  int           // that have told
	From     string        // who has told
	Stored   uint64        // bytes stored by the server that is fullest
	Most     int64         // and that it may store
}

// DefaultInterval is nats-server's own.
const DefaultInterval = 2 * time.Minute

// jsz is what nats-server tells of its JetStream, as far as it matters here.
type jsz struct {
	Disabled bool `json:"disabled"`
	Config   struct {
		SyncInterval time.Duration `json:"sync_interval"`
		SyncAlways   bool          `json:"sync_always"`
		MaxStore     int64         `json:"max_storage"`
	} `json:"config"`
	Store uint64 `json:"storage"`
}

// fuller are the bytes stored, and those that may be, of s or of the server that tells z, whichever is fuller.
func (s Sync) fuller(z jsz) (stored uint64, most int64) {
	if most := z.Config.MaxStore; most > 0 && (s.Most == 0 || float64(z.Store)/float64(most) > float64(s.Stored)/float64(s.Most)) {
		return z.Store, most
	}
	return s.Stored, s.Most
}

// sync puts what one server tells to what the others have told.
func (s Sync) and(z jsz, from string) Sync {
	if z.Disabled {
		return s
	}
	one := Sync{Known: true, Always: z.Config.SyncAlways, Interval: z.Config.SyncInterval, Servers: s.Servers + 1, From: from}
	if s.Known {
		one.Always = one.Always && s.Always
		one.Interval = max(one.Interval, s.Interval)
	}
	one.Stored, one.Most = s.fuller(z)
	return one
}

// AskSync asks the monitoring ports of all servers (URLs like http://host:8222), or without any the servers themselves, which answer only to
// users that may ask $SYS. The error says why nobody can tell; it is nil when a server has told.
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
	answers, err := gather(ctx, nc, "$SYS.REQ.SERVER.PING.JSZ", []byte("{}"), 500*time.Millisecond)
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

// getMonitor reads what a page of a monitoring port says, which may be the one other status too. name is the page's, for messages.
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

// gather sends a request and returns the answers that come in time: all that can, of those who answer for themselves.
func gather(ctx context.Context, nc *nats.Conn, subject string, body []byte, wait time.Duration) ([]*nats.Msg, error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(subject, inbox, body); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var list []*nats.Msg
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return list, nil // time is over, or the subscription: what came is what there is
		}
		if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
			return nil, nil
		}
		list = append(list, m)
	}
}

// Words are what a stored event survives, and what it does not, with so many copies of it. They claim no more than is known.
func (s Sync) Words(replicas int) string {
	lag := "at a time that is not known here"
	switch {
	case s.Known && s.Always:
		if replicas > 1 {
			return fmt.Sprintf("%d copies, on the disks of most of them before the publisher is told: survives power cuts, and the loss of %d of the servers", replicas, replicas/2)
		}
		return "one copy, on disk before the publisher is told: survives a power cut, and not the loss of that disk"
	case s.Known:
		lag = "at most " + s.Interval.String() + " later"
	}
	if replicas > 1 {
		return fmt.Sprintf("%d copies, most of them written to their operating systems before the publisher is told, and to disk %s: survives crashes, and the loss of %d of the servers; not a power cut of more at once",
			replicas, lag, replicas/2)
	}
	return fmt.Sprintf("one copy, written to the operating system before the publisher is told, and to disk %s: survives crashes of processes; not a power cut", lag)
}

// Mode is the mode in a word.
func (s Sync) Mode() string {
	switch {
	case !s.Known:
		return "unknown"
	case s.Always:
		return "fsync"
	}
	return "default"
}
