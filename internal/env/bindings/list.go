package bindings

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	maxPage   = 1000    // keys of one list()
	maxListed = 100_000 // keys that begin with the prefix
	// chargedAtOnce is of how many messages the memory is charged at once.
	chargedAtOnce = 1000

	// A list with more than a page is kept for the next pages, within these bounds for the process and for an owner.
	keptFor        = 30 * time.Second
	maxKept        = 64 << 20 // bytes
	maxKeptOfOwner = 16 << 20 // bytes
)

// listed is a key of a list.
type listed struct {
	name, expiration, metadata string
}

func (l listed) size() int { return 64 + len(l.name) + len(l.expiration) + len(l.metadata) }

// snapshot is a sorted list, kept for its next pages.
type snapshot struct {
	owner, base, prefix string
	keys                []listed
	size                int
	made                time.Time
}

// lists are the snapshots of the process.
type lists struct {
	mu    sync.Mutex
	kept  map[string]*snapshot // by id
	bytes int
}

// keep keeps s, and returns its id; "" if there is no room.
func (l *lists) keep(s *snapshot) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[string]*snapshot{}
	}
	of := s.size
	for id, old := range l.kept {
		if time.Since(old.made) > keptFor {
			delete(l.kept, id)
			l.bytes -= old.size
		} else if old.owner == s.owner {
			of += old.size
		}
	}
	if l.bytes+s.size > maxKept || of > maxKeptOfOwner {
		return ""
	}
	id := rand.Text()
	l.kept[id] = s
	l.bytes += s.size
	return id
}

// get returns the snapshot with this id if it is of that owner, namespace and prefix.
func (l *lists) get(id, owner, base, prefix string) *snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.kept[id]; s != nil && s.owner == owner && s.base == base && s.prefix == prefix {
		return s
	}
	return nil
}

// list has the arguments prefix, number of keys (0 = all that fit a page) and cursor ("" = from the beginning). It
// answers with the cursor of the next page ("" = none), and with name, expiration and metadata of each key.
func (k *kv) list(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b, err := k.open(ctx, c, 3)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	prefix := c.Texts[0]
	n, err := strconv.Atoi(c.Texts[1])
	switch {
	case len(prefix) > maxKey:
		//nolint:staticcheck // Cloudflare's words
		return lifecycle.Answer{}, fmt.Errorf("414 UTF-8 encoded length of %d exceeds key length limit of %d.", len(prefix), maxKey)
	case err != nil || n > maxPage:
		//nolint:staticcheck // Cloudflare's words
		return lifecycle.Answer{}, fmt.Errorf("400 Invalid key_count_limit of %s. Please specify an integer less than %d.", c.Texts[1], maxPage)
	case n < 1:
		n = maxPage
	}
	after, id, err := b.readCursor(base(c), prefix, c.Texts[2])
	if err != nil {
		return lifecycle.Answer{}, err
	}
	s := k.lists.get(id, c.Owner, base(c), prefix)
	if s == nil {
		if s, err = k.snapshot(ctx, c, b, prefix); err != nil {
			return lifecycle.Answer{}, err
		}
		id = ""
	}
	from := 0
	if after != "" {
		from, _ = slices.BinarySearchFunc(s.keys, after,
			func(l listed, name string) int { return strings.Compare(l.name, name) })
		if from < len(s.keys) && s.keys[from].name == after {
			from++
		}
	}
	page := s.keys[from:min(from+n, len(s.keys))]
	answer := lifecycle.Answer{Texts: make([]string, 1, 1+3*len(page))}
	for _, l := range page {
		answer.Texts = append(answer.Texts, l.name, l.expiration, l.metadata)
	}
	if from+n < len(s.keys) {
		if id == "" {
			id = k.lists.keep(s)
		}
		answer.Texts[0] = b.cursor(base(c), prefix, page[len(page)-1].name, id)
	}
	return answer, nil
}

// snapshot lists all keys that begin with the prefix. Only the headers of their values are read.
func (k *kv) snapshot(ctx context.Context, c *lifecycle.Call, b *bucket, prefix string) (*snapshot, error) {
	s := &snapshot{owner: c.Owner, base: base(c), prefix: prefix, made: time.Now()}
	err := b.walk(ctx, walk{filters: filters(s.base, prefix), most: maxListed,
		hint: "divide keys with : or / and name a longer prefix"}, c.Hold, func(m *stored.Message) int {
		l, ok := listedOf(m, s.base, prefix)
		if !ok {
			return 0
		}
		s.keys = append(s.keys, l)
		s.size += l.size()
		return l.size()
	})
	if err != nil {
		return nil, k.failedWalk(c, err)
	}
	s.sort()
	return s, nil
}

func (k *kv) failedWalk(c *lifecycle.Call, err error) error {
	if refusal := (refusal{}); errors.As(err, &refusal) {
		return refusal
	}
	return k.failed(c, err)
}

// refusal is an error whose text is for the author of a handler.
type refusal struct{ text string }

func (r refusal) Error() string { return r.text }

func (s *snapshot) sort() {
	slices.SortFunc(s.keys, func(a, b listed) int { return cmp.Compare(a.name, b.name) })
	// A key that was put while they were read came twice.
	s.keys = slices.CompactFunc(s.keys, func(a, b listed) bool { return a.name == b.name })
}

// walk says which messages of a bucket are read.
type walk struct {
	filters []string
	last    bool   // only the last message of each subject
	most    int    // with more messages nothing is read
	hint    string // what to do then
}

// walk calls each for the headers of messages. each returns how many bytes of memory it took, and hold charges them. A
// refusal is an error of the caller's. Without an error, each has seen them all.
func (b *bucket) walk(ctx context.Context, w walk, hold func(int) error, each func(*stored.Message) int) error {
	tooMany := func(n uint64) error {
		return refusal{fmt.Sprintf("400 %d keys are to be looked through: at most %d; %s", n, w.most, w.hint)}
	}
	scan, err := stored.Headers(ctx, b.nc, b.stream.CachedInfo().Config.Name, w.filters, w.last)
	if err != nil {
		return err
	}
	if scan.Pending > uint64(w.most) {
		scan.Close()
		return tooMany(scan.Pending)
	}
	held, read := 0, uint64(0)
	charge := func() error {
		taken := held
		held = 0
		if err := hold(taken); err != nil {
			return refusal{fmt.Sprintf("429 %v", err)}
		}
		return nil
	}
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return err
		}
		held += each(m)
		if read++; read%chargedAtOnce == 0 {
			if err := charge(); err != nil {
				return err
			}
		}
		if read > 2*uint64(w.most) { // they are written as fast as they are read
			return tooMany(read)
		}
	}
	return charge()
}

// listedOf returns what a message says of a key.
func listedOf(m *stored.Message, base, prefix string) (l listed, ok bool) {
	tokens, ok := strings.CutPrefix(m.Subject, base)
	if !ok {
		return l, false
	}
	if l.name, ok = decodeKey(tokens); !ok || !strings.HasPrefix(l.name, prefix) {
		return l, false
	}
	h := m.Header
	if entryOf(h, nil) == nil {
		return l, false
	}
	if _, err := strconv.ParseInt(h.Get(headerExpires), 10, 64); err == nil {
		l.expiration = h.Get(headerExpires)
	}
	l.metadata = metadataOf(h)
	return l, true
}

// cursor is where the next page begins: after a key, in a snapshot. It is for the same namespace and prefix only.
func (b *bucket) cursor(base, prefix, after, snapshot string) string {
	text := snapshot + "." + after
	return base64.RawURLEncoding.EncodeToString(append(b.sign(base, prefix, text), text...))
}

// readCursor is the inverse of cursor. The error says that the cursor was not made by cursor for these.
func (b *bucket) readCursor(base, prefix, cursor string) (after, snapshot string, err error) {
	if cursor == "" {
		return "", "", nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(data) > sha256.Size {
		text := string(data[sha256.Size:])
		if hmac.Equal(data[:sha256.Size], b.sign(base, prefix, text)) {
			snapshot, after, _ = strings.Cut(text, ".")
			return after, snapshot, nil
		}
	}
	return "", "", errors.New("400 Invalid cursor: it is none of a list of this namespace with this prefix")
}

func (b *bucket) sign(base, prefix, text string) []byte {
	h := hmac.New(sha256.New, b.secret)
	_, _ = fmt.Fprintf(h, "%q %q %q", base, prefix, text)
	return h.Sum(nil)
}
