package bindings

import (
	"context"
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

// readAtOnce is how many descriptions of a list are read before they are charged to the run.
const readAtOnce = 64

// listing are the arguments of list().
type listing struct {
	prefix, delimiter string
	after             string // the page begins after this key
	shown             string // the last key of the page before, or of its last group; "" = none
	limit             int
	http, custom      bool // whether the results have them
}

// list has the arguments prefix, limit ("" = a page), cursor, delimiter, startAfter, and "1" for httpMetadata and for
// customMetadata. It answers with the cursor of the next page ("" = none), the number of delimited prefixes, these, and
// the objects.
func (o *objects) list(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b, err := o.open(ctx, c, 7)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	l := listing{prefix: c.Texts[0], delimiter: c.Texts[3], after: c.Texts[4], limit: maxPage, http: c.Texts[5] == "1",
		custom: c.Texts[6] == "1"}
	if c.Texts[1] != "" {
		if l.limit, err = strconv.Atoi(c.Texts[1]); err != nil || l.limit < 1 || l.limit > maxPage {
			return lifecycle.Answer{}, fmt.Errorf("MaxKeys params must be positive integer <= %d. (10022)", maxPage)
		}
	}
	base := c.Binding.Value + "/"
	signed := l.prefix + "\x00" + l.delimiter
	var id string
	if l.shown, id, err = b.readCursor(base, signed, c.Texts[2]); err != nil {
		//nolint:staticcheck // Cloudflare's words
		return lifecycle.Answer{}, errors.New("Invalid cursor: it is none of a list of this bucket with this prefix and delimiter (10022)")
	}
	l.after = max(l.after, l.shown)
	s := o.lists.get(id, c.Owner, base, l.prefix)
	if s == nil {
		if s, err = o.snapshot(ctx, c, b, base, l.prefix); err != nil {
			return lifecycle.Answer{}, err
		}
		id = ""
	}
	keys, prefixes, last, more := l.page(s.keys)
	answer := lifecycle.Answer{Texts: append([]string{"", strconv.Itoa(len(prefixes))}, prefixes...)}
	for part := range slices.Chunk(keys, readAtOnce) {
		texts, err := o.describeAll(ctx, c, b, l, part)
		if err != nil {
			return lifecycle.Answer{}, err
		}
		answer.Texts = append(answer.Texts, texts...)
	}
	if more {
		if id == "" {
			id = o.lists.keep(s)
		}
		answer.Texts[0] = b.cursor(base, signed, last, id)
	}
	return answer, nil
}

// page returns the keys and the delimited prefixes of a page, where the next one begins (after last), and whether there
// is one.
func (l *listing) page(all []listed) (keys, prefixes []string, last string, more bool) {
	from, _ := slices.BinarySearchFunc(all, l.after,
		func(k listed, name string) int { return strings.Compare(k.name, name) })
	for _, k := range all[from:] {
		if l.after != "" && k.name == l.after {
			continue
		}
		group := l.group(k.name)
		// A group is one entry, and the page before had it if it ended there.
		if group != "" && (len(prefixes) > 0 && prefixes[len(prefixes)-1] == group || l.shown != "" &&
			strings.HasPrefix(l.shown, group)) {
			last = k.name
			continue
		}
		if len(keys)+len(prefixes) == l.limit {
			return keys, prefixes, last, true
		}
		last = k.name
		if group != "" {
			prefixes = append(prefixes, group)
		} else {
			keys = append(keys, k.name)
		}
	}
	return keys, prefixes, last, false
}

// group is the delimited prefix of a key, and "" if it has none.
func (l *listing) group(key string) string {
	if l.delimiter == "" {
		return ""
	}
	if i := strings.Index(key[len(l.prefix):], l.delimiter); i >= 0 {
		return key[:len(l.prefix)+i+len(l.delimiter)]
	}
	return ""
}

// describeAll reads what objects are. Those that are gone meanwhile are left out.
func (o *objects) describeAll(ctx context.Context, c *lifecycle.Call, b *bucket, l listing,
	keys []string) ([]string, error) {
	texts := make([]string, len(keys))
	leader := fromLeader(b, c)
	err := inParallel(len(keys), func(i int) error {
		n, err := object(c, keys[i])
		if err != nil {
			return nil //nolint:nilerr // put by others with a key that is too long
		}
		v, err := o.read(ctx, n, leader)
		if v = v.there(); v != nil {
			texts[i] = v.describe(keys[i], nil, l.http, l.custom)
		}
		return err
	})
	if err != nil {
		return nil, o.failed(c, err)
	}
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if err := c.Hold(size); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" }), nil
}

// snapshot lists the keys of a bucket that begin with the prefix. It looks through the names of all objects of the
// owner.
func (o *objects) snapshot(ctx context.Context, c *lifecycle.Call, b *bucket, base, prefix string) (*snapshot, error) {
	s := &snapshot{owner: c.Owner, base: base, prefix: prefix, made: time.Now()}
	subject := "$O." + ObjectsBucket(c.Owner) + ".M."
	err := b.walk(ctx, walk{filters: []string{subject + "*"}, most: maxListed,
		hint: "remove some, of any bucket of the owner"}, c.Hold, func(m *stored.Message) int {
		name, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(m.Subject, subject))
		key, ok := strings.CutPrefix(string(name), base)
		if err != nil || !ok || !strings.HasPrefix(key, prefix) {
			return 0
		}
		l := listed{name: key}
		s.keys = append(s.keys, l)
		s.size += l.size()
		return l.size()
	})
	if refusal := (refusal{}); errors.As(err, &refusal) {
		return nil, refusal
	}
	if err != nil {
		return nil, o.failed(c, err)
	}
	s.sort()
	return s, nil
}

const (
	// sweepEvery is how often a process sweeps an owner's store at most.
	sweepEvery = time.Minute
	// sweepAge is how old chunks are that a sweep removes. Those of a put under way are younger.
	sweepAge = 5 * putTime
)

// sweeps are the sweeps of a store by this process.
type sweeps struct {
	mu   sync.Mutex
	last time.Time
}

func (s *sweeps) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) < sweepEvery {
		return false
	}
	s.last = now
	return true
}

// sweep removes chunks that no object has: of processes that died in a put, or before they removed what it replaced. It
// returns how many versions it removed. They take the owner's own bytes, and so they are removed when these run out.
func (o *objects) sweep(ctx context.Context, b *bucket, owner string, now time.Time) int {
	if !b.sweeps.due(now) {
		return 0
	}
	subjects := "$O." + ObjectsBucket(owner)
	type chunks struct{ id, object string }
	var old []chunks
	free := func(int) error { return nil } // bounded by maxListed
	err := b.walk(ctx, walk{filters: []string{subjects + ".C.*"}, last: true, most: maxListed}, free,
		func(m *stored.Message) int {
			object := m.Header.Get(headerObject)
			if object != "" && now.Sub(m.Time) > sweepAge {
				old = append(old, chunks{strings.TrimPrefix(m.Subject, subjects+".C."), object})
			}
			return 0
		})
	used := map[string]bool{}
	if err == nil {
		err = b.walk(ctx, walk{filters: []string{subjects + ".M.*"}, most: maxListed}, free, func(m *stored.Message) int {
			used[m.Header.Get(headerVersion)] = true
			return 0
		})
	}
	if err != nil {
		o.cfg.Log.Warn().Err(err).Str("owner", owner).Msg("object store not swept")
		return 0
	}
	removed := 0
	for _, c := range old {
		if used[c.id] || ctx.Err() != nil {
			continue
		}
		// The copy of the stream that was read may be behind. The leader knows.
		name, err := base64.URLEncoding.DecodeString(c.object)
		if err != nil {
			continue
		}
		n := named{owner, string(name)}
		v, err := o.read(ctx, n, true)
		if err != nil && !errors.Is(err, stored.ErrNone) || v != nil && v.NUID == c.id {
			continue
		}
		o.purge(ctx, b, n.chunks(c.id))
		removed++
	}
	return removed
}
