package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
)

const (
	// maxList is how many bytes a list of keys or objects takes in a process, and maxLists what all of them take at once.
	maxList, maxLists = 16 << 20, 64 << 20
)

// ownerData are the keys, values and objects that owners have stored.
type ownerData struct {
	ops    *Operations
	stores ownerStores
	bodies *bodies
	lists  listRoom
}

// ownerStores opens what an owner has stored. hold is told of the bytes that a list takes in a process.
type ownerStores interface {
	keys(ctx context.Context, owner string, hold func(int) error) (*bindings.Data, error)
	objects(ctx context.Context, owner string, hold func(int) error) (*bindings.ObjectData, error)
}

// boundStores opens them in a process.
type boundStores struct{ *bindings.Bindings }

func (b boundStores) keys(_ context.Context, owner string, hold func(int) error) (*bindings.Data, error) {
	return b.Data(owner, hold), nil
}

func (b boundStores) objects(_ context.Context, owner string, hold func(int) error) (*bindings.ObjectData, error) {
	return b.Objects(owner, hold), nil
}

// listRoom counts the bytes that requests about owners' data take in a process.
type listRoom struct{ used atomic.Int64 }

// held are the bytes that one request takes. Its methods are for one goroutine.
type held struct {
	room  *listRoom
	bytes int64
}

// take takes bytes. Its error says why there are none.
func (h *held) take(n int) error {
	if h.bytes+int64(n) > maxList {
		return errTooMuch
	}
	if h.room.used.Add(int64(n)) > maxLists {
		h.room.used.Add(-int64(n))
		return errNoRoom
	}
	h.bytes += int64(n)
	return nil
}

var (
	errTooMuch = fmt.Errorf("the list takes more than %d bytes: name a longer prefix", maxList)
	errNoRoom  = errors.New("this process lists too much at once: try again")
)

func (h *held) giveBack() { h.room.used.Add(-h.bytes) }

// storedIn is the error of a request about what an owner has stored in a namespace or a bucket. Bindings begin their
// errors with the code that a handler sees.
func storedIn(owner string, err error) error {
	var refused *Error
	switch {
	case err == nil || errors.As(err, &refused):
		return err
	case errors.Is(err, bindings.ErrNoData), errors.Is(err, bindings.ErrNoObjects):
		return &Error{Code: http.StatusNotFound, Text: fmt.Sprintf("%s: %v yet", owner, err)}
	case errors.Is(err, bindings.ErrObjectChanged):
		return &Error{Code: http.StatusConflict, Text: err.Error()}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	}
	text := err.Error()
	code, rest, ok := cutCode(text)
	if !ok { // R2's errors have a number of their own
		return refusedWith(http.StatusBadRequest, text)
	}
	switch {
	case code == http.StatusRequestURITooLong:
		code = http.StatusBadRequest
	case code == http.StatusTooManyRequests && rest == errTooMuch.Error():
		code = http.StatusRequestEntityTooLarge
	case code == http.StatusGatewayTimeout, code == http.StatusTooManyRequests && rest == errNoRoom.Error():
		code = http.StatusServiceUnavailable
	}
	return refusedWith(code, rest)
}

func refusedWith(code int, text string) error { return &Error{Code: code, Text: text} }

// cutCode splits "413 Value length…".
func cutCode(text string) (code int, rest string, ok bool) {
	if len(text) < 5 || text[3] != ' ' {
		return 0, "", false
	}
	code, err := strconv.Atoi(text[:3])
	return code, text[4:], err == nil && code >= 400 && code < 600
}

// OwnerKey names a key of a namespace.
type OwnerKey struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
}

// OwnerObject names an object of a bucket.
type OwnerObject struct {
	Owner  string `json:"owner"`
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
}

// ListKeys chooses keys of a namespace.
type ListKeys struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	Prefix    string `json:"prefix,omitempty"`
	After     string `json:"after,omitempty"` // next of the page before
	Limit     int    `json:"limit,omitempty"`
}

// ListObjects chooses objects of a bucket.
type ListObjects struct {
	Owner  string `json:"owner"`
	Bucket string `json:"bucket"`
	Prefix string `json:"prefix,omitempty"`
	After  string `json:"after,omitempty"` // next of the page before
	Limit  int    `json:"limit,omitempty"`
}

// checkStore checks the owner and the name of a namespace or a bucket.
func checkStore(owner, field, name string) error {
	if err := events.CheckName("owner", owner); err != nil {
		return wrongName("owner", err)
	}
	if err := events.CheckName(field, name); err != nil {
		return wrongName(field, err)
	}
	return nil
}

// keys calls do with the keys and values of an owner.
func (od *ownerData) keys(ctx context.Context, owner, namespace string, do func(*bindings.Data) error) error {
	if err := checkStore(owner, "namespace", namespace); err != nil {
		return err
	}
	h := &held{room: &od.lists}
	defer h.giveBack()
	d, err := od.stores.keys(ctx, owner, h.take)
	if err != nil {
		return err
	}
	return storedIn(owner, do(d))
}

// objects calls do with the objects of an owner.
func (od *ownerData) objects(ctx context.Context, owner, bucket string, do func(*bindings.ObjectData) error) error {
	if err := checkStore(owner, "bucket", bucket); err != nil {
		return err
	}
	h := &held{room: &od.lists}
	defer h.giveBack()
	d, err := od.stores.objects(ctx, owner, h.take)
	if err != nil {
		return err
	}
	return storedIn(owner, do(d))
}
