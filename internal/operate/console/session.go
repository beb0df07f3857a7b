package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/pinwheel-run/pinwheel/events"
)

// role is what a session may do.
type role int

const (
	nobody   role = iota
	viewer        // sees
	operator      // sees and acts
)

// Operates reports whether r may act.
func (r role) Operates() bool { return r == operator }

func (r role) String() string { return [...]string{"nobody", "viewer", "operator"}[r] }

const (
	sessionCookie = "pinwheel_console"
	sessionTime   = 12 * time.Hour
	maxWho        = 64 // bytes of a name
)

// session is who sends a request.
type session struct {
	Role role
	Who  string // what the person says of itself; nothing checks it
	CSRF string // forms have it
}

// claim is what a cookie says.
type claim struct {
	Role  role      `json:"role"`
	Who   string    `json:"who,omitempty"`
	Until time.Time `json:"until"`
}

// sessions signs and checks cookies. It keeps nothing: each process with the same tokens accepts them, and a changed
// token ends all sessions that began with it.
type sessions struct {
	open   bool
	tokens map[role]string
	own    []byte // key of an open console, which has no tokens
}

func newSessions(cfg Config) *sessions {
	s := &sessions{open: cfg.Open, tokens: map[role]string{}, own: []byte(rand.Text())}
	if cfg.ViewToken != "" {
		s.tokens[viewer] = cfg.ViewToken
	}
	if cfg.OperateToken != "" {
		s.tokens[operator] = cfg.OperateToken
	}
	return s
}

// roleOf is the role that a token gives.
func (s *sessions) roleOf(token string) role {
	given, found := sha256.Sum256([]byte(token)), nobody
	for r, t := range s.tokens {
		want := sha256.Sum256([]byte(t))
		if subtle.ConstantTimeCompare(given[:], want[:]) == 1 {
			found = r
		}
	}
	return found
}

// sign makes a signature for a purpose. Each role has a key of its own: from what a viewer gets, nobody can try tokens
// of operators.
func (s *sessions) sign(r role, purpose, text string) string {
	key := s.own
	if !s.open {
		key = []byte(s.tokens[r])
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte("pinwheel console " + purpose + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// begin makes the cookie of a session.
func (s *sessions) begin(r role, who string, now time.Time) *http.Cookie {
	text, _ := json.Marshal(claim{r, who, now.Add(sessionTime)}) // numbers, a string and a time cannot fail
	body := base64.RawURLEncoding.EncodeToString(text)
	return cookie(sessionCookie, body+"."+s.sign(r, "session", body), sessionTime)
}

// cookieName is the name under which a browser has a cookie of this console. Browsers send a cookie to all ports of a
// host, so the name has the port: another console of the host, or a program that sets cookies there, does not replace
// it. Behind a proxy with TLS it has a prefix with which no other host can set it.
func cookieName(r *http.Request, name string) string {
	if behindTLS(r) {
		return "__Host-" + name
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil && strings.Trim(port, "0123456789") == "" {
		return name + "_" + port
	}
	return name
}

// behindTLS reports whether a proxy with TLS passed the request on. Who forges the header of the proxy has only a
// cookie that goes fewer ways.
func behindTLS(r *http.Request) bool { return r.Header.Get("X-Forwarded-Proto") == "https" }

func cookie(name, value string, life time.Duration) *http.Cookie {
	//nolint:gosec // setCookie says Secure
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteStrictMode}
}

// setCookie adds a cookie to the answer. Behind a proxy with TLS it does not go over a plain connection.
func setCookie(w http.ResponseWriter, r *http.Request, k *http.Cookie) { //nolint:gosec // cookie sets the others
	k.Name, k.Secure = cookieName(r, k.Name), behindTLS(r)
	http.SetCookie(w, k)
}

// of returns the session of a request. Its role is nobody when it has none that is valid.
func (s *sessions) of(r *http.Request, now time.Time) session {
	if s.open {
		return session{Role: operator, CSRF: s.sign(operator, "form", "")}
	}
	// Others can set cookies of the name, for another path or from another port. They end no session.
	for _, k := range r.CookiesNamed(cookieName(r, sessionCookie)) {
		if found := s.read(k.Value, now); found.Role != nobody {
			return found
		}
	}
	return session{}
}

// read returns the session of a cookie. Its role is nobody when the cookie is not valid.
func (s *sessions) read(value string, now time.Time) session {
	body, signature, ok := strings.Cut(value, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	var said claim
	if !ok || err != nil || json.Unmarshal(text, &said) != nil || s.tokens[said.Role] == "" {
		return session{}
	}
	if !hmac.Equal([]byte(signature), []byte(s.sign(said.Role, "session", body))) || !now.Before(said.Until) {
		return session{}
	}
	return session{Role: said.Role, Who: said.Who, CSRF: s.sign(said.Role, "form", value)}
}

// cleanWho makes a name fit for a header and the audit stream.
func cleanWho(name string) string {
	clean := make([]rune, 0, len(name))
	for _, r := range events.Clip(name, maxWho) {
		if unicode.IsGraphic(r) && r != unicode.ReplacementChar {
			clean = append(clean, r)
		}
	}
	return string(clean)
}

const noticeCookie = "pinwheel_notice"

// notice is a cookie with a text that the next page shows once. It is signed: pages of other ports can set cookies.
func (s *sessions) notice(r role, text string) *http.Cookie {
	body := base64.RawURLEncoding.EncodeToString([]byte(text))
	return cookie(noticeCookie, body+"."+s.sign(r, "notice", body), time.Minute)
}

// takeNotice returns the text of such a cookie, and has the browser forget it.
func (s *sessions) takeNotice(w http.ResponseWriter, r *http.Request, of role) string {
	for _, k := range r.CookiesNamed(cookieName(r, noticeCookie)) {
		setCookie(w, r, cookie(noticeCookie, "", -time.Second))
		body, signature, _ := strings.Cut(k.Value, ".")
		text, err := base64.RawURLEncoding.DecodeString(body)
		if err == nil && of != nobody && hmac.Equal([]byte(signature), []byte(s.sign(of, "notice", body))) {
			return string(text)
		}
	}
	return ""
}
