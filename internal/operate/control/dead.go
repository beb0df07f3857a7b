package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
)

// LetterList is a page of the list of dead letters, without their bodies.
type LetterList struct {
	Letters    []*events.LetterJSON `json:"letters"`
	Unreadable []uint64             `json:"unreadable,omitempty"`
	// Next is the ID after which the next page begins, or before which, when the newest come first; 0 at the end.
	Next uint64 `json:"next,omitempty"`
	// Scanned is how many letters were read for a list of the newest. More: looking ended before the page was full,
	// because it took long. The page may be empty then, and the next one goes on.
	Scanned int  `json:"scanned,omitempty"`
	More    bool `json:"more,omitempty"`
}

// ListLetters chooses dead letters.
type ListLetters struct {
	Filter
	Bodies bool   `json:"bodies,omitempty"` // with their bodies, if these fit the answer
	Newest bool   `json:"newest,omitempty"` // the newest first
	Before uint64 `json:"before,omitempty"` // only smaller IDs; only with Newest
}

// DeadLetters lists dead letters, the oldest first, or the newest.
func (o *Operations) DeadLetters(ctx context.Context, r ListLetters) (LetterList, error) {
	page := letterPage{LetterList: LetterList{Letters: []*events.LetterJSON{}}, bodies: r.Bodies, room: o.answerRoom()}
	f, err := r.Parse()
	if err != nil {
		return page.LetterList, err
	}
	if f.Limit, err = listed(f.Limit); err != nil {
		return page.LetterList, err
	}
	switch {
	case r.Newest:
		err = page.newest(ctx, o.dead, f, r.Before, maxScanned)
	case r.Before != 0:
		err = wrongField("before", " is %d: it needs newest; without that, after says where a page begins", r.Before)
	default:
		err = page.oldest(ctx, o.dead, f)
	}
	return page.LetterList, err
}

// LetterID names one letter.
type LetterID struct {
	ID    uint64 `json:"id"`
	asker        // a letter of another owner is not found
}

func (r LetterID) check() error {
	if r.ID == 0 {
		return refused("id is missing: it is the number of a letter, as dead.list shows it")
	}
	return nil
}

// DeadLetter returns a letter. It includes the body if the body fits in the answer.
func (o *Operations) DeadLetter(ctx context.Context, r LetterID) (*events.LetterJSON, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	l, err := o.letter(ctx, r)
	if err != nil {
		return nil, err
	}
	j := l.JSON(true)
	if text, err := json.Marshal(j); err == nil && len(text) > o.answerRoom() {
		j.Body, j.BodyBase64 = nil, nil // bodyBytes shows that there is one
	}
	return j, nil
}

// LetterPart names a letter, and where a part of its body begins.
type LetterPart struct {
	LetterID
	From int `json:"from,omitempty"`
}

// LetterBody is a part of a letter's body: as much as a message takes.
type LetterBody struct {
	Bytes int    `json:"bytes"` // of the whole body
	Part  []byte `json:"part"`
	Next  int    `json:"next,omitempty"` // where the next part begins; 0 at the end
}

// deadBody returns a part of the body of a letter. The body of a number never changes.
func (s *Server) deadBody(ctx context.Context, r LetterPart) (LetterBody, error) {
	if err := r.check(); err != nil {
		return LetterBody{}, err
	}
	l, err := s.letter(ctx, r.LetterID)
	if err != nil {
		return LetterBody{}, err
	}
	b := LetterBody{Bytes: len(l.Body)}
	b.Part, b.Next, err = bytesPart(l.Body, r.From, s.answerRoom())
	return b, err
}

// bytesPart is the part of data from a byte on that takes at most room bytes as JSON, and where the next one begins.
func bytesPart(data []byte, from, room int) (part []byte, next int, err error) {
	switch {
	case from < 0 || from > len(data):
		return nil, 0, wrongField("from", " is %d: there are %d bytes", from, len(data))
	case room < 4 && from < len(data):
		return nil, 0, errors.New("an answer has no room for data: max_payload is too small")
	}
	part = data[from:min(len(data), from+room/4*3)] // base64
	if end := from + len(part); end < len(data) {
		next = end
	}
	return part, next, nil
}

// letter reads a letter.
func (o *Operations) letter(ctx context.Context, r LetterID) (*events.DeadLetter, error) {
	l, err := o.dead.Get(ctx, r.ID)
	if r.by != "" && (errors.Is(err, deadletter.ErrUndecodable) || err == nil && l.Owner != r.by) {
		return nil, fmt.Errorf("%w: %d", deadletter.ErrNoDeadLetter, r.ID) // an owner learns nothing of others' letters
	}
	return l, err
}

// EditLetter changes a letter.
type EditLetter struct {
	LetterID
	Edit
}

// EditedLetter has the new ID of a changed letter, and its old ID.
type EditedLetter struct {
	ID  uint64 `json:"id"`
	Was uint64 `json:"was"`

	owner string // of the letter
}

func (e EditedLetter) concerns() string { return e.owner }

// EditDeadLetter changes a letter. The letter gets a new ID.
func (o *Operations) EditDeadLetter(ctx context.Context, r EditLetter) (EditedLetter, error) {
	if err := r.check(); err != nil {
		return EditedLetter{}, err
	}
	e, err := r.edit()
	if err != nil {
		return EditedLetter{}, err
	}
	if e.Empty() {
		return EditedLetter{}, refused("nothing to change: name body, bodyBase64, patch, setHeaders or removeHeaders")
	}
	if r.by != "" { // a number is never used for another letter
		if _, err := o.letter(ctx, r.LetterID); err != nil {
			return EditedLetter{}, err
		}
	}
	l, err := o.dead.Edit(ctx, r.ID, e)
	if err != nil {
		return EditedLetter{}, err
	}
	return EditedLetter{l.Seq, r.ID, l.Owner}, nil
}

// MaxReplays is how many replays a list may have: as many as are known of an owner.
const MaxReplays = 10_000

// ReplayList has the results of replays, the oldest first.
type ReplayList struct {
	Replays []*deadletter.Replayed `json:"replays"`
	Left    int                    `json:"leftOff,omitempty"` // older ones that did not fit
}

// Replays returns the results of replays.
func (o *Operations) Replays(ctx context.Context, r ReplayFilter) (ReplayList, error) {
	list := ReplayList{Replays: []*deadletter.Replayed{}}
	if err := r.checkIDs(r.IDs); err != nil {
		return list, err
	}
	var err error
	if r.Limit < 0 || r.Limit > MaxReplays {
		return list, refused("limit is %d: it is 1 to %d, or 0 for 100", r.Limit, MaxReplays)
	}
	r.Limit = cmp.Or(r.Limit, 100)
	f, err := r.Parse()
	if err != nil {
		return list, err
	}
	for one, err := range o.dead.Replays(ctx, f) {
		if err != nil {
			return list, err
		}
		list.Replays = append(list.Replays, one)
	}
	for { // the newest that fit
		text, err := json.Marshal(list)
		if err != nil || len(text) <= o.answerRoom() {
			return list, err
		}
		half := (len(list.Replays) + 1) / 2
		list.Replays, list.Left = list.Replays[half:], list.Left+half
	}
}
