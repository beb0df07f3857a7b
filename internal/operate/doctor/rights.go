package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// rights are the permissions of a user, as the server reports them.
type rights struct {
	Data struct {
		Account     string `json:"account"`
		User        string `json:"user"`
		Permissions *struct {
			Publish, Subscribe *struct{ Allow, Deny []string }
		} `json:"permissions"`
	} `json:"data"`
}

// NeededPermissions returns the subjects that the fleet's user must be able to publish and subscribe to, apart from
// inboxes: its own and those of requesters.
func NeededPermissions(s events.Subjects) (publish, subscribe []string) {
	p := string(s)
	publish = []string{p + ".>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV.>", "$O.>"}
	subscribe = []string{p + ".call.>", p + ".credit.*.*.*", p + ".cancel.*.*", p + ".unschedule.*.*", p + ".body.*.*.*",
		p + ".control.>", p + ".owner.>", "$SRV.>"}
	return publish, subscribe
}

// permissions checks whether this user has the permissions that the fleet needs.
func (p *checker) permissions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	m, err := p.NC.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	var r rights
	if err == nil {
		err = json.Unmarshal(m.Data, &r)
	}
	if err != nil {
		p.warn("permissions", "let it request $SYS.REQ.USER.INFO", "what this user may do is not known: %v", err)
		return
	}
	pub, sub := NeededPermissions(p.Subjects)
	var missing []string
	if q := r.Data.Permissions; q != nil {
		if q.Publish != nil {
			missing = append(missing, lacking("publish to ", pub, q.Publish.Allow, q.Publish.Deny)...)
		}
		if q.Subscribe != nil {
			missing = append(missing, lacking("subscribe to ", sub, q.Subscribe.Allow, q.Subscribe.Deny)...)
		}
	}
	if missing != nil {
		p.bad("permissions", "docs/guides/security.md has what the fleet's user needs", "user %s of account %s may not %s", r.Data.User,
			r.Data.Account, strings.Join(missing, ", "))
		return
	}
	p.ok("permissions", "user %s of account %s may do what the fleet must", orNone(r.Data.User), r.Data.Account)
}

// MayAsk returns an error if the user of a connection may not send requests to JetStream, as the user of an owner. The
// server answers such a request only with an error of the connection.
func MayAsk(ctx context.Context, nc *nats.Conn) error {
	if err := nc.PublishRequest("$JS.API.INFO", nc.NewInbox(), nil); err != nil {
		return err
	}
	if err := nc.FlushWithContext(ctx); err != nil {
		return err
	}
	return resources.Denied(nc)
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// lacking returns the subjects that are not fully allowed.
func lacking(verb string, need, allow, deny []string) (list []string) {
	for _, subject := range need {
		ok := len(allow) == 0
		for _, a := range allow {
			ok = ok || Covers(a, subject)
		}
		for _, d := range deny {
			ok = ok && !Covers(d, subject) && !Covers(subject, d)
		}
		if !ok {
			list = append(list, verb+subject)
		}
	}
	return list
}

// Covers reports whether a matches every subject that b matches.
func Covers(a, b string) bool {
	for {
		at, arest, amore := strings.Cut(a, ".")
		bt, brest, bmore := strings.Cut(b, ".")
		switch {
		case at == ">":
			return true
		case bt == ">" || at != "*" && at != bt:
			return false
		case !amore || !bmore:
			return amore == bmore
		}
		a, b = arest, brest
	}
}

// strangers checks whether a client without credentials has permissions that only the fleet should have.
func (p *checker) strangers(ctx context.Context) {
	if p.Anonymous == nil {
		return
	}
	nc, err := p.Anonymous()
	if errors.Is(err, nats.ErrAuthorization) || err != nil && strings.Contains(strings.ToLower(err.Error()),
		"authorization") {
		p.ok("strangers", "a client without credentials is refused")
		return
	}
	if err != nil {
		p.warn("strangers", "", "whether a client without credentials is refused is not known: %v", err)
		return
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+events.StreamEvents, nil); err != nil {
		p.ok("strangers", "a client without credentials may connect, and may not use $JS.API of this account")
		return
	}
	const do = "give the server users with permissions: docs/guides/security.md"
	if u, err := url.Parse(nc.ConnectedUrl()); err == nil && loopback(u.Hostname()) {
		p.warn("strangers", do+"; fine on a machine of your own", "any client that reaches %s may do everything; it is on this machine", u.Host)
		return
	}
	p.bad("strangers", do, "any client that reaches the server may do everything, such as delete streams and read every reply")
}

func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
