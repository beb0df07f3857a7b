package bindings

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// maxCached is the largest body that a cache keeps, bytes.
	maxCached = 512 << 10
	// maxCachedHead is the most that a cache keeps of status and headers, bytes of JSON.
	maxCachedHead = 32 << 10
	// maxFresh is how long a cache keeps a response at most.
	maxFresh = 365 * 24 * time.Hour

	headerResponse = "Pinwheel-Response" // a head as JSON
)

// head is the beginning of a response.
type head struct {
	Status  int      `json:"status"`
	Headers []string `json:"headers"` // name, value, name, value …
}

func (h head) header() http.Header {
	all := http.Header{}
	for i := 0; i+1 < len(h.Headers); i += 2 {
		all.Add(h.Headers[i], h.Headers[i+1])
	}
	return all
}

// cache is Cloudflare's Cache API on a stream for each owner. When a stream is full, its oldest responses go.
type cache struct {
	backend
	streams opened[*cached]
}

func newCache(b backend) *cache {
	k := &cache{backend: b}
	k.streams.create = k.createStream
	k.streams.bound = func(owner string) int { return k.policy(owner).CacheBytes }
	return k
}

// CacheBucket is the name of the bucket with what the workers of an owner cache. It exists from the first call on.
func CacheBucket(owner string) string { return "PINWHEEL_CACHE_" + owner }

// cacheBytes is how many bytes an owner with this policy may cache.
func (c Config) cacheBytes(p workers.Policy) int64 { return cmp.Or(int64(p.CacheBytes), c.CacheBytes) }

// CacheStream is the stream of what the workers of an owner cache, with this policy, as it is created. It is like that
// of a KV bucket, but its oldest messages make room for new ones.
func (c Config) CacheStream(owner string, p workers.Policy) jetstream.StreamConfig {
	size := min(c.cacheBytes(p), firstBytes)
	return jetstream.StreamConfig{
		Name: resources.BucketStream(CacheBucket(owner)), Description: "Responses that workers of Pinwheel's owner " + owner +
			" cache",
		Subjects: []string{"$KV." + CacheBucket(owner) + ".>"}, MaxMsgsPerSubject: 1, MaxBytes: size,
		Discard:     jetstream.DiscardOld,
		AllowDirect: true, AllowMsgTTL: true, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (k *cache) createStream(ctx context.Context, owner string) (*cached, error) {
	p := k.policy(owner)
	config := k.cfg.CacheStream(owner, p)
	r := resources.Reconciler{JS: k.js, Log: k.cfg.Log, Grows: true}
	err := r.Stream(ctx, config)
	if err == nil {
		err = k.bound(ctx, config.Name, p.CacheBytes)
	}
	if err != nil {
		_, err = inWords(k.told(config.Name, err), "cacheBytes")
		return nil, err
	}
	return &cached{name: config.Name}, nil
}

func (k *cache) method(name string) method {
	switch name {
	case "match":
		return k.match
	case "put":
		return k.put
	case "delete":
		return k.remove
	}
	return nil
}

// open returns the stream of the owner's caches, and the subject of a response. The first arguments of all methods are
// the name of the cache and the URL.
func (k *cache) open(ctx context.Context, c *lifecycle.Call, texts int) (stream *cached, subject string, err error) {
	if len(c.Texts) < texts {
		return nil, "", fmt.Errorf("400 %d arguments, not %d", len(c.Texts), texts)
	}
	stream, err = k.streams.of(ctx, c.Owner)
	name, url := sha256.Sum256([]byte(c.Texts[0])), sha256.Sum256([]byte(c.Texts[1]))
	return stream, "$KV." + CacheBucket(c.Owner) + "." + hex.EncodeToString(name[:16]) + "." + hex.EncodeToString(url[:]),
		err
}

func (k *cache) failed(c *lifecycle.Call, err error) error {
	gone, err := inWords(err, "cacheBytes")
	if gone {
		k.streams.forget(c.Owner)
	}
	return err
}

// match has the further arguments Range, If-None-Match and If-Modified-Since of the request ("" = it has none). It
// answers with the status, the Content-Length ("" = none) and the other headers, and with the body; with no texts if
// nothing is cached.
func (k *cache) match(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	stream, subject, err := k.open(ctx, c, 5)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	h, body, err := stored.Last(ctx, k.nc, stream.name, subject)
	switch {
	case errors.Is(err, stored.ErrNone):
		return lifecycle.Answer{}, nil
	case err != nil:
		return lifecycle.Answer{}, k.failed(c, err)
	}
	if err := c.Hold(len(body)); err != nil {
		return lifecycle.Answer{}, fmt.Errorf("429 %w", err)
	}
	var is head
	if entryOf(h, body) == nil || json.Unmarshal([]byte(h.Get(headerResponse)), &is) != nil {
		return lifecycle.Answer{}, nil
	}
	return answerFrom(is, body, c.Texts[2], c.Texts[3], c.Texts[4]), nil
}

// answerFrom is what a cached response answers to a request with these headers.
func answerFrom(is head, body []byte, ranges, noneMatch, modifiedSince string) lifecycle.Answer {
	status, headers, length := is.Status, slices.Clone(is.Headers), strconv.Itoa(len(body))
	if strings.Contains(ranges, ",") { // several would be a response of another type
		ranges = ""
	}
	if status == http.StatusOK && ranges+noneMatch+modifiedSince != "" {
		r := &http.Request{Method: http.MethodGet, Header: http.Header{}}
		for name, value := range map[string]string{"Range": ranges, "If-None-Match": noneMatch,
			"If-Modified-Since": modifiedSince} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		of := is.header()
		w := &recorder{header: http.Header{"Content-Type": nil, "Etag": {of.Get("ETag")}}} // a missing type would be guessed
		modified, _ := http.ParseTime(of.Get("Last-Modified"))
		http.ServeContent(w, r, "", modified, bytes.NewReader(body))
		switch status = w.status; status {
		case http.StatusPartialContent:
			body = w.body.Bytes()
			length = strconv.Itoa(len(body))
			headers = append(headers, "content-range", w.header.Get("Content-Range"))
		case http.StatusRequestedRangeNotSatisfiable:
			body, length, headers = nil, "", []string{"content-range", w.header.Get("Content-Range")}
		case http.StatusNotModified:
			body = nil
		}
	}
	return lifecycle.Answer{Texts: append([]string{strconv.Itoa(status), length}, headers...), Body: body}
}

// recorder keeps what http.ServeContent writes.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) { w.status = status }

func (w *recorder) Write(data []byte) (int, error) { return w.body.Write(data) }

// put has the further arguments status, and headers as name, value, name, value … What may not be kept is not kept, and
// that is no error.
func (k *cache) put(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	stream, subject, err := k.open(ctx, c, 3)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	status, err := strconv.Atoi(c.Texts[2])
	if err != nil {
		return lifecycle.Answer{}, fmt.Errorf("400 the status is %.20q", c.Texts[2])
	}
	is := head{status, c.Texts[3:]}
	fresh := freshness(is.Status, is.header(), time.Now())
	is.Headers = withoutPrivate(is)
	text, err := json.Marshal(is)
	if err != nil || fresh < time.Second || len(c.Body) > maxCached || len(text) > maxCachedHead {
		return lifecycle.Answer{}, err
	}
	m := nats.NewMsg(subject)
	m.Data = c.Body
	m.Header.Set(headerResponse, string(text))
	m.Header.Set(headerExpires, strconv.FormatInt(time.Now().Add(fresh).Unix(), 10))
	if _, err := k.js.PublishMsg(ctx, m, jetstream.WithMsgTTL(fresh.Round(time.Second))); err != nil {
		return lifecycle.Answer{}, k.failed(c, err)
	}
	k.grew(ctx, stream, k.cfg.cacheBytes(k.policy(c.Owner)), m.Size())
	return lifecycle.Answer{}, nil
}

// remove answers with "true" if there was a response.
func (k *cache) remove(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	stream, subject, err := k.open(ctx, c, 2)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	body, _ := json.Marshal(map[string]string{"filter": subject}) // strings cannot fail
	m, err := k.nc.RequestWithContext(ctx, "$JS.API.STREAM.PURGE."+stream.name, body)
	if err != nil {
		return lifecycle.Answer{}, k.failed(c, err)
	}
	var answer struct {
		Error  *jetstream.APIError `json:"error"`
		Purged uint64              `json:"purged"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return lifecycle.Answer{}, k.failed(c, err)
	}
	if answer.Error != nil {
		return lifecycle.Answer{}, k.failed(c, answer.Error)
	}
	return lifecycle.Answer{Texts: []string{strconv.FormatBool(answer.Purged > 0)}}, nil
}

// cacheable are the statuses that a cache may keep (RFC 9110 §15.1, and redirects).
var cacheable = map[int]bool{
	200: true, 203: true, 300: true, 301: true, 302: true, 303: true, 307: true, 308: true, 404: true, 405: true,
	410: true, 414: true, 501: true,
}

// freshness is how long a shared cache may keep a response (RFC 9111 §3, §4.2.1); 0 = it may not. Without an explicit
// time it may not.
func freshness(status int, h http.Header, now time.Time) time.Duration {
	d := directives(h)
	private, isPrivate := d["private"]
	_, noStore := d["no-store"]
	_, noCache := d["no-cache"]
	switch {
	case !cacheable[status] || noStore || noCache || isPrivate && private == "":
		return 0
	case h.Get("Set-Cookie") != "" && !strings.Contains(strings.ToLower(private), "set-cookie"):
		return 0
	}
	for _, name := range []string{"s-maxage", "max-age"} {
		if text, ok := d[name]; ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return 0
			}
			return min(time.Duration(min(n, int64(maxFresh/time.Second)))*time.Second, maxFresh)
		}
	}
	expires, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	return max(0, min(expires.Sub(now), maxFresh))
}

// withoutPrivate are the headers of a response without those that a shared cache must not keep: private="Set-Cookie".
func withoutPrivate(is head) []string {
	names := strings.Split(strings.ToLower(directives(is.header())["private"]), ",")
	kept := make([]string, 0, len(is.Headers))
	for i := 0; i+1 < len(is.Headers); i += 2 {
		name := strings.ToLower(is.Headers[i])
		if name != "content-length" &&
			!slices.ContainsFunc(names, func(n string) bool { return strings.TrimSpace(n) == name }) {
			kept = append(kept, name, is.Headers[i+1])
		}
	}
	return kept
}

// directives are those of Cache-Control, in lower case, with their values without quotes.
func directives(h http.Header) map[string]string {
	all := map[string]string{}
	quoted := false
	for _, field := range strings.FieldsFunc(strings.Join(h.Values("Cache-Control"), ","), func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	}) {
		name, value, _ := strings.Cut(field, "=")
		all[strings.ToLower(strings.TrimSpace(name))] = strings.Trim(strings.TrimSpace(value), `"`)
	}
	return all
}
