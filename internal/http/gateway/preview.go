package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Previews signs and checks the hosts of versions: NUMBER-TIME-SIGNATURE--WORKER--OWNER.DOMAIN. Who has none of its
// keys cannot name the host of a version: versions that nobody has shown yet, and those of which nobody wants to know
// any more, are on no host that can be counted or guessed. Any goroutine may call its methods.
type Previews struct{ keys [][]byte }

// NewPreviews makes a Previews. The first key signs, and all are good. Without keys there are no previews.
func NewPreviews(keys [][]byte) *Previews { return &Previews{keys} }

const (
	signatureBytes = 10 // 80 bits, which can be tried only by requests
	maxLabel       = 63 // bytes of a label of a host
	timeBase       = 36
)

// Errors of Host. Other errors say what is wrong with the names.
var (
	ErrNoPreviewKey = errors.New("previews need PINWHEEL_SECRETS_KEY: their links are signed with a key that is derived from it")
	ErrNoPreviews   = errors.New(`its manifest does not say "previews": true in "http"`)
)

// Host is where w is shown until a time, which is cut to a minute. w is a version of a worker with the active version
// active, which may be nil.
func (p *Previews) Host(w, active *workers.Worker, domain string, until time.Time) (string, error) {
	switch {
	case domain == "":
		return "", errors.New("workers have no hosts: PINWHEEL_HTTP_DOMAIN is empty")
	case len(p.keys) == 0:
		return "", ErrNoPreviewKey
	case !mayShow(w, nil):
		return "", fmt.Errorf("version %s of %s has no preview: %w", w.Version, w.Target(), ErrNoPreviews)
	case !mayShow(w, active):
		return "", fmt.Errorf("version %s of %s has no preview while version %s is active: %w", w.Version, w.Target(), active.Version, ErrNoPreviews)
	}
	minute := strconv.FormatInt(until.Unix()/60, timeBase)
	label := fmt.Sprintf("%d-%s-%s--%s--%s", w.Number, minute, sign(p.keys[0], w, minute), w.Name, w.Owner)
	if len(label) > maxLabel {
		return "", fmt.Errorf("the names of %s are too long for the host of a preview: that would have a label of %d bytes, and %d are allowed", w.Target(), len(label), maxLabel)
	}
	host := label + "." + domain
	if t, ok := byHost(hostName(host), domain); !ok || t.owner != w.Owner || t.worker != w.Name {
		return "", fmt.Errorf("%s has no host: upper case and two hyphens cannot be in a name there", w.Target())
	}
	return host, nil
}

// version finds the version that the first part of a host names, if its signature is right and its time is not over.
func (p *Previews) version(signed string, in workers.Installation, now time.Time) *workers.Worker {
	parts := strings.Split(signed, "-")
	if len(parts) != 3 {
		return nil
	}
	minute, err := strconv.ParseInt(parts[1], timeBase, 64)
	if err != nil || now.Unix() >= minute*60 {
		return nil
	}
	i := slices.IndexFunc(in.Versions, func(w *workers.Worker) bool { return strconv.Itoa(w.Number) == parts[0] })
	if i < 0 {
		return nil
	}
	w := in.Versions[i]
	good := slices.ContainsFunc(p.keys,
		func(key []byte) bool { return hmac.Equal([]byte(sign(key, w, parts[1])), []byte(parts[2])) })
	if !good || !mayShow(w, in.Active()) {
		return nil
	}
	return w
}

// mayShow reports whether a version may be shown to who has a signed host. What is newer decides: a version that is
// active says of older ones, too, whether they may be shown.
func mayShow(w, active *workers.Worker) bool {
	if active != nil && active.Number > w.Number && (active.HTTP == nil || !active.HTTP.Previews) {
		return false
	}
	return w.HTTP != nil && w.HTTP.Previews
}

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// sign signs that a version may be shown until a minute. The whole name of the version says which code it is, also when
// a worker that was removed is deployed again.
func sign(key []byte, w *workers.Worker, minute string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(strings.Join([]string{"preview", w.Owner, w.Name, w.Version, minute}, "\x00")))
	return base32Lower.EncodeToString(m.Sum(nil)[:signatureBytes])
}

// preview finds the version of a host that names one. All other hosts of versions have no worker, so that nobody learns
// which versions or workers there are.
func (g *Gateway) preview(t target) (version string, no *refusal) {
	in, ok := g.Workers.Installed(t.owner, t.worker)
	if !ok || g.Previews == nil {
		return "", notFound
	}
	w := g.Previews.version(t.preview, in, time.Now())
	if w == nil {
		return "", notFound
	}
	return w.Version, nil
}
