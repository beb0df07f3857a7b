package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
)

// KeyList is a page of keys.
type KeyList struct {
	Keys []bindings.Key `json:"keys"`
	Next string         `json:"next,omitempty"` // "" at the end
}

// GetValue asks for a value.
type GetValue struct {
	OwnerKey
	From int `json:"from,omitempty"` // byte of the value where the part begins
}

// StoredValue is a value, or a part of it: as much as a message takes.
type StoredValue struct {
	Bytes    int             `json:"bytes"`  // of the whole value
	SHA256   string          `json:"sha256"` // of the whole value, hex
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Part     []byte          `json:"part"`
	Next     int             `json:"next,omitempty"` // where the next part begins; 0 at the end
}

// PutValue sets a value.
type PutValue struct {
	OwnerKey
	Value    []byte          `json:"value,omitempty"`    // unless it is in Body
	Body     *UploadedBody   `json:"body,omitempty"`     // a value that does not fit the request
	TTL      int64           `json:"ttl,omitempty"`      // seconds; 0 = without end
	Metadata json.RawMessage `json:"metadata,omitempty"` // any JSON; null = none
}

// SizedValue is how many bytes of a value were stored or removed.
type SizedValue struct {
	Bytes int `json:"bytes"`
}

// listKeys lists keys of a namespace, sorted by bytes.
func (od *ownerData) listKeys(ctx context.Context, r ListKeys) (KeyList, error) {
	list := KeyList{Keys: []bindings.Key{}}
	limit, err := listed(r.Limit)
	if err != nil {
		return list, err
	}
	room := od.ops.answerRoom()
	err = od.keys(ctx, r.Owner, r.Namespace, func(d *bindings.Data) (err error) {
		list.Next, err = d.KeyPage(ctx, r.Namespace, r.Prefix, r.After, limit, func(k bindings.Key) bool {
			return fits(&room, k, len(list.Keys), func() { list.Keys = append(list.Keys, k) })
		})
		return err
	})
	return list, err
}

// fits calls add if one takes no more than what is left of the room of an answer, or is its first one.
func fits(room *int, one any, before int, add func()) bool {
	text, err := json.Marshal(one)
	if err != nil {
		return false
	}
	if *room -= len(text) + 1; *room < 0 && before > 0 {
		return false
	}
	add()
	return true
}

// getValue returns a value.
func (od *ownerData) getValue(ctx context.Context, r GetValue) (answer StoredValue, err error) {
	err = od.keys(ctx, r.Owner, r.Namespace, func(d *bindings.Data) error {
		v, err := found(d.Get(ctx, r.Namespace, r.Key))(r.OwnerKey)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(v.Data)
		answer = StoredValue{Bytes: len(v.Data), SHA256: hex.EncodeToString(sum[:]), Metadata: v.Metadata}
		text, err := json.Marshal(answer)
		if err == nil {
			answer.Part, answer.Next, err = bytesPart(v.Data, r.From, od.ops.answerRoom()-len(text))
		}
		return err
	})
	return answer, err
}

// found returns a value that is there.
func found(v *bindings.Value, err error) func(OwnerKey) (*bindings.Value, error) {
	return func(k OwnerKey) (*bindings.Value, error) {
		if err == nil && v == nil {
			return nil, &Error{Code: http.StatusNotFound, Text: fmt.Sprintf("%s/%s has no key %q", k.Owner, k.Namespace, k.Key)}
		}
		return v, err
	}
}

// putValue sets a value.
func (od *ownerData) putValue(ctx context.Context, r PutValue) (SizedValue, error) {
	switch {
	case r.TTL < 0 || r.TTL > bindings.MaxTTL:
		return SizedValue{}, wrongField("ttl", " is %d: it is 1 to %d seconds, or 0 for no end", r.TTL, int64(bindings.MaxTTL))
	case r.Body != nil && r.Value != nil:
		return SizedValue{}, refused("value, or body: not both")
	case r.Body != nil:
		if err := r.Body.check(bindings.MaxValue); err != nil {
			return SizedValue{}, err
		}
	}
	if string(r.Metadata) == "null" {
		r.Metadata = nil
	}
	put := func(data []byte) (bool, error) {
		return false, od.keys(ctx, r.Owner, r.Namespace, func(d *bindings.Data) error {
			return d.Put(ctx, r.Namespace, r.Key, bindings.Value{Data: data, Metadata: r.Metadata},
				time.Duration(r.TTL)*time.Second)
		})
	}
	if r.Body == nil {
		_, err := put(r.Value)
		return SizedValue{len(r.Value)}, err
	}
	if err := checkStore(r.Owner, "namespace", r.Namespace); err != nil { // the body is its owner's
		return SizedValue{}, err
	}
	return SizedValue{r.Body.Bytes}, od.bodies.with(ctx, r.Owner, *r.Body, put)
}

// removeKey removes a key with its value.
func (od *ownerData) removeKey(ctx context.Context, r OwnerKey) (answer SizedValue, err error) {
	err = od.keys(ctx, r.Owner, r.Namespace, func(d *bindings.Data) error {
		v, err := found(d.Get(ctx, r.Namespace, r.Key))(r)
		if err != nil {
			return err
		}
		answer.Bytes = len(v.Data)
		return d.Delete(ctx, r.Namespace, r.Key)
	})
	return answer, err
}

// Value returns a value.
func Value(ctx context.Context, c *Client, k OwnerKey) (*bindings.Value, error) {
	r, v, sum := GetValue{OwnerKey: k}, &bindings.Value{}, ""
	for {
		one, err := Ask(ctx, c, KVGet, r)
		if err != nil {
			return nil, err
		}
		if r.From > 0 && one.SHA256 != sum {
			return nil, fmt.Errorf("the value of key %q was changed while it was read", k.Key)
		}
		sum, v.Metadata = one.SHA256, one.Metadata
		v.Data = append(v.Data, one.Part...)
		if one.Next == 0 {
			return v, nil
		}
		if r.From = one.Next; r.From != len(v.Data) {
			return nil, fmt.Errorf("kv.get of key %q: a process answered with another part", k.Key)
		}
	}
}

// FitsRequest reports whether a value can be sent in a request.
func (c *Client) FitsRequest(value []byte) bool {
	const rest = 32 << 10 // key and metadata, escaped, and headers
	return len(value)/3*4+4 <= int(c.nc.MaxPayload())-rest
}
