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
)

// rights are what the server says that a user may do.
type rights struct {
	Data struct {
		Account     string `json:"account"`
		User        string `json:"user"`
		Permissions *struct {
			Publish, Subscribe *struct{ Allow, Deny []string }
		} `json:"permissions"`
	} `json:"data"`
}

// NeededPermissions are the subjects that the fleet's user must be able to publish and to subscribe to, beside the inboxes
// that replies go to and its own.
func NeededPermissions(s events.Subjects) (publish, subscribe []string) {
	p := string(s)
	publish = []string{p + ".>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV.>", "$O.>"}
	subscribe = []string{p + ".call.>", p + ".credit.*.*.*", p + ".cancel.*.*", p + ".unschedule.*.*", p + ".body.*.*.*", p + ".control.>", "$SRV.>"}
	return publish, subscribe
}

// permissions looks at whether this user may do what the fleet must.
func (p *patient) permissions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	m, err := p.NC.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	var r rights
	if err == nil {
		err = json.Unmarshal(m.Data, &r)
	}
	if err != nil {
		p.warn("permissions", "let it request $SYS.REQ.USER.INFO", "what this user may do cannot be told: %v", err)
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
		p.bad("permissions", "docs/security.md has what the fleet's user needs", "user %s of account %s may not %s", r.Data.User, r.Data.Account, strings.Join(missing, ", "))
		return
	}
	p.ok("permissions", "user %s of account %s may do what the fleet must", orNobody(r.Data.User), r.Data.Account)
}

func orNobody(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// lacking are the subjects that are not wholly allowed, or in part denied.
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

// Covers reports whether every subject that b matches is one that a matches.
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

// anonymous sees whether somebody without credentials may do what only the fleet should.
func (p *patient) anonymous(ctx context.Context) {
	if p.Anonymous == nil {
		return
	}
	nc, err := p.Anonymous()
	if errors.Is(err, nats.ErrAuthorization) || err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization") {
		p.ok("strangers", "who has no credentials is refused")
		return
	}
	if err != nil {
		p.warn("strangers", "", "whether somebody without credentials is refused cannot be told: %v", err)
		return
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+p.Events, nil); err != nil {
		p.ok("strangers", "who has no credentials may connect, and not use $JS.API of this account")
		return
	}
	const do = "give the server users with permissions: docs/security.md"
	if u, err := url.Parse(nc.ConnectedUrl()); err == nil && loopback(u.Hostname()) {
		p.warn("strangers", do+"; fine on a machine of your own", "who reaches %s may do everything; it is of this machine", u.Host)
		return
	}
	p.bad("strangers", do, "who reaches the server may do everything, such as delete streams and read every reply")
}

func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
