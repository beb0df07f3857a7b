package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
)

// LetterList is a page of the list of dead letters, without their bodies.
type LetterList struct {
	Letters    []*events.LetterJSON `json:"letters"`
	Unreadable []uint64             `json:"unreadable,omitempty"`
	Next       uint64               `json:"next,omitempty"` // ID after which the next page begins; 0 at the end
}

// DeadLetters lists dead letters, the oldest first.
func (o *Operations) DeadLetters(ctx context.Context, r Filter) (LetterList, error) {
	list, n, size := LetterList{Letters: []*events.LetterJSON{}}, 0, 0
	f, err := r.Parse()
	if err != nil {
		return list, err
	}
	if f.Limit, err = listed(f.Limit); err != nil {
		return list, err
	}
	for l, err := range o.dead.List(ctx, f) {
		if ctx.Err() != nil {
			return list, &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("looking took longer than %s: choose by owner, worker, kind or reason too", requestTimeout)}
		}
		if l == nil {
			return list, err
		}
		n++
		list.Next = l.Seq
		if errors.Is(err, deadletter.ErrUndecodable) {
			list.Unreadable = append(list.Unreadable, l.Seq)
			continue
		}
		j := l.JSON(false)
		text, err := json.Marshal(j)
		if err != nil {
			return list, err
		}
		if size += len(text) + 1; size > o.answerRoom() && len(list.Letters) > 0 {
			list.Next = list.Letters[len(list.Letters)-1].ID
			return list, nil
		}
		list.Letters = append(list.Letters, j)
	}
	if n < f.Limit {
		list.Next = 0
	}
	return list, nil
}

// LetterID names one letter.
type LetterID struct {
	ID   uint64 `json:"id"`
	only string // owner of the letter, or it is not found; "": any
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

// letter reads a letter.
func (o *Operations) letter(ctx context.Context, r LetterID) (*events.DeadLetter, error) {
	l, err := o.dead.Get(ctx, r.ID)
	if r.only != "" && (errors.Is(err, deadletter.ErrUndecodable) || err == nil && l.Owner != r.only) {
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
	if r.only != "" { // a number is never used for another letter
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

// ReplayList has the results of replays, the oldest first.
type ReplayList struct {
	Replays []*deadletter.Replayed `json:"replays"`
	Left    int                    `json:"leftOff,omitempty"` // older ones that did not fit
}

// Replays returns the results of replays.
func (o *Operations) Replays(ctx context.Context, r ReplayFilter) (ReplayList, error) {
	list := ReplayList{Replays: []*deadletter.Replayed{}}
	if len(r.IDs) > maxControlIDs {
		return list, refused("ids has %d entries: it has at most %d", len(r.IDs), maxControlIDs)
	}
	var err error
	if r.Limit, err = listed(r.Limit); err != nil {
		return list, err
	}
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
