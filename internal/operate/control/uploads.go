package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// maxUploads is how many deploys a process handles at once. An owner has one of them.
	maxUploads = 2
	// checkShare is the part of its time that an owner may have a process check modules, and checkBurst how much of that
	// it may have at once. So a module that loops while it is loaded costs its owner deploys, and a process a tenth of a
	// CPU.
	checkShare, checkBurst = 0.1, 20 * time.Second
	// filesShare and filesBurst are the same for storing files, objects and imported letters.
	filesShare, filesBurst = 0.25, 2 * time.Minute
)

// uploadKind says what uploads limits, in words for owners, and how much of its time an owner may have a process work.
type uploadKind struct {
	one, many, slow string
	share           float64
	burst           time.Duration
}

var (
	ofDeploys = uploadKind{"a deploy", "deploys", "modules of owner %s took too long to load", checkShare, checkBurst}
	ofFiles   = uploadKind{"an upload of files", "uploads of files", "files of owner %s took too long to store", filesShare,
		filesBurst}
	ofBodies = uploadKind{"an import or an object", "imports and objects", "imports and objects of owner %s took too long to store",
		filesShare, filesBurst}
)

// uploads limits the deploys that owners ask of a process, or other requests that have a body in parts.
type uploads struct {
	kind uploadKind     // this does not change
	time perowner.Rates // microseconds

	mu   sync.Mutex
	busy []string // owners that have one under way
}

func newUploads(of uploadKind) *uploads {
	return &uploads{kind: of, time: perowner.Rates{PerSecond: int(of.share * float64(time.Second.Microseconds())),
		Burst: int(of.burst.Microseconds())}}
}

// enter takes a slot for a deploy of an owner. Its error says why there is none.
func (u *uploads) enter(owner string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	owes := u.time.Owes(owner, now)
	switch {
	case slices.Contains(u.busy, owner):
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("owner %s has %s under way in this process: try again", owner,
			u.kind.one)}
	case owes > 0:
		return &Error{Code: http.StatusTooManyRequests, Text: fmt.Sprintf("rate: "+u.kind.slow+": try again in %s", owner,
			max(time.Second, owes.Round(time.Second)))}
	case len(u.busy) >= maxUploads:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process has too many %s of owners under way: try again",
			u.kind.many)}
	case !u.time.Room(owner, knownOwners, now):
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process has handled too many %s of owners just now: try again",
			u.kind.many)}
	}
	u.busy = append(u.busy, owner)
	return nil
}

// leave returns the slot, and charges the owner for the time that its module took.
func (u *uploads) leave(owner string, took time.Duration, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.busy, owner)
	u.busy = slices.Delete(u.busy, i, i+1)
	u.time.Charge(owner, int(min(took, u.kind.burst).Microseconds()), now)
}

// inlineID stands for the id of a body that is not stored in parts.
const inlineID = "inline"

// maxBundleParts is how many parts a body may have. A client makes them as large as max_payload allows.
const maxBundleParts = 4096

// bodies are what owners have stored in parts for a request that does not fit one message.
type bodies struct {
	nc       *nats.Conn
	subjects events.Subjects
	inline   bool     // in a command, a request may have its body in itself
	uploads  *uploads // of imports, values and objects
	log      zerolog.Logger
}

// UploadedBody names a body that was stored in parts, as a body of its owner.
type UploadedBody struct {
	ID    string `json:"id"`
	Parts int    `json:"parts"`
	Bytes int    `json:"bytes"` // of all parts

	data []byte // of a request that this program handles
}

// InlineBody is a body in a request that this program handles.
func InlineBody(data []byte) UploadedBody {
	return UploadedBody{ID: inlineID, Parts: 1, Bytes: len(data), data: data}
}

// check checks the fields that reading does not check. most is how many bytes are allowed.
func (b UploadedBody) check(most int) error {
	switch {
	case b.Parts < 0 || b.Parts > maxBundleParts:
		return wrongField("body.parts", " is %d: it is 0 to %d", b.Parts, maxBundleParts)
	case b.Parts > 0 && events.CheckName("id of a body", b.ID) != nil:
		return wrongField("body.id", " %.80q: it is the id of a body that was stored in parts", b.ID)
	case b.Bytes < 0 || b.Bytes > most:
		return wrongField("body.bytes", " is %d: it is 0 to %d", b.Bytes, most)
	}
	return nil
}

// with reads a body of an owner and calls do with it. An owner has one such request at a time in a process, so that
// bodies in memory are few. The parts are removed, unless the request may be sent again: then do returns again, or an
// error of this process.
func (b *bodies) with(ctx context.Context, owner string, body UploadedBody,
	do func(data []byte) (again bool, err error)) error {
	return b.under(ctx, b.uploads, owner,
		parts{"body", "body.bytes says", body.ID, body.Parts, body.Bytes, body.data}, do)
}

// under is with, for parts of any request, under the bound of these uploads.
func (b *bodies) under(ctx context.Context, u *uploads, owner string, p parts,
	do func(data []byte) (again bool, err error)) error {
	if err := u.enter(owner, time.Now()); err != nil {
		return err
	}
	began := time.Now()
	defer func() { u.leave(owner, time.Since(began), time.Now()) }()
	data, err := b.read(ctx, owner, p)
	again := false
	if err == nil {
		again, err = do(data)
	}
	if p.n > 0 && !again && !mayAskAgain(err) {
		b.drop(ctx, owner, p.id) // nobody needs them any more
	}
	return err
}

// mayAskAgain reports whether the same request may succeed later.
func mayAskAgain(err error) bool {
	if err == nil {
		return false
	}
	switch codeOf(err) {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError:
		return true
	}
	return false
}

// parts are stored parts of a body, which a request names.
type parts struct {
	noun, says string // what they are, and where the request says their size, for errors
	id         string
	n, size    int    // how many they are, and their bytes in all
	inline     []byte // what they would be, if this program handles the request
}

// read reads parts. Only the owner's own parts can be named: the owner is in their subject.
func (b *bodies) read(ctx context.Context, owner string, p parts) ([]byte, error) {
	if b.inline && p.id == inlineID && len(p.inline) == p.size {
		return p.inline, nil
	}
	data := make([]byte, 0, p.size)
	for i := range p.n {
		part, err := stored.LastData(ctx, b.nc, events.StreamBodies, b.subjects.BodyPart(owner, p.id, i))
		switch {
		case errors.Is(err, stored.ErrNone):
			return nil, refused("part %d of %d of %s %s is not there: parts are stored first, and kept for 24 hours", i, p.n, p.noun, p.id)
		case err != nil:
			return nil, fmt.Errorf("part %d of %s %s: %w", i, p.noun, p.id, err)
		case len(part) == 0:
			return nil, refused("part %d of %s %s has no bytes", i, p.noun, p.id)
		case len(part) > p.size-len(data):
			return nil, refused("%s %s has more than the %d bytes that %s", p.noun, p.id, p.size, p.says)
		}
		data = append(data, part...)
	}
	if len(data) < p.size {
		return nil, refused("%s %s has %d bytes: %s %d", p.noun, p.id, len(data), p.says, p.size)
	}
	return data, nil
}

// drop removes the parts. If that fails, JetStream removes them after 24 hours.
func (b *bodies) drop(ctx context.Context, owner, id string) {
	if id == inlineID {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWait)
	defer cancel()
	body, _ := json.Marshal(map[string]string{"filter": b.subjects.BodyParts(owner, id)}) // strings cannot fail
	_, err := b.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + events.StreamBodies,
		Data: body})
	if err != nil {
		b.log.Debug().Err(err).Str("owner", owner).Msg("the parts of an upload stay until their time is over")
	}
}

// dropWait limits the time that removing parts takes.
const dropWait = 2 * time.Second
