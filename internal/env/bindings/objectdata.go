package bindings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// MaxObject is the largest object of a put, bytes.
const MaxObject = maxObject

// ObjectData is the objects of one owner, for people and tools. Workers use Bindings.
type ObjectData struct {
	store
	objects *objects
}

// OpenObjects returns the objects of an owner with this policy. It does not talk to NATS.
func OpenObjects(nc *nats.Conn, js jetstream.JetStream, cfg Config, owner string, p workers.Policy) *ObjectData {
	return objectsOf(newObjects(backend{nc, js, cfg, func(string) workers.Policy { return p }, nil}, &lists{}), owner)
}

func objectsOf(o *objects, owner string) *ObjectData {
	return &ObjectData{store{
		js: o.js, owner: owner, stream: named{owner: owner}.stream(), kind: workers.BindingObjects, noun: "bucket",
		none: ErrNoObjects, method: o.method,
	}, o}
}

// ErrNoObjects is the error when an owner has no objects: none was ever put.
var ErrNoObjects = errors.New("the owner has no objects")

// Object is what an object is, without its data.
type Object struct {
	Key         string            `json:"key"`
	Size        uint64            `json:"size"` // bytes
	Etag        string            `json:"etag"`
	Uploaded    time.Time         `json:"uploaded"`
	ContentType string            `json:"contentType,omitempty"`
	Metadata    map[string]string `json:"customMetadata,omitempty"`

	version string
}

func readObject(text string) (*Object, error) {
	var d described
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, err
	}
	return &Object{d.Key, d.Size, d.Etag, time.UnixMilli(d.Uploaded).UTC(), d.HTTP["contentType"], d.Custom, d.Version},
		nil
}

// List lists the objects of a bucket whose keys begin with prefix, sorted by bytes, in pages. It calls each for each
// object.
func (d *ObjectData) List(ctx context.Context, bucket, prefix string, each func(*Object) error) error {
	if err := d.exists(ctx); err != nil {
		return err
	}
	for cursor := ""; ; {
		a, err := d.call(ctx, "list", bucket, nil, prefix, "", cursor, "", "", "1", "1")
		if err != nil {
			return err
		}
		for _, text := range objectTexts(a) {
			o, err := readObject(text)
			if err == nil {
				err = each(o)
			}
			if err != nil {
				return err
			}
		}
		if cursor = a.Texts[0]; cursor == "" {
			return nil
		}
	}
}

// objectTexts are the objects in the answer of a list without a delimiter: behind the cursor and the number of
// prefixes, which is 0.
func objectTexts(a lifecycle.Answer) []string { return a.Texts[2:] }

// Head returns what an object is, or nil if it is not there.
func (d *ObjectData) Head(ctx context.Context, bucket, key string) (*Object, error) {
	if err := d.exists(ctx); err != nil {
		return nil, err
	}
	a, err := d.call(ctx, "head", bucket, nil, key)
	if err != nil || len(a.Texts) == 0 {
		return nil, err
	}
	return readObject(a.Texts[0])
}

// readPart is how many bytes of an object are read at once.
const readPart = 4 << 20

// Copy writes the data of an object that Head returned to w, part by part. It fails if the object changes meanwhile.
func (d *ObjectData) Copy(ctx context.Context, bucket string, o *Object, w io.Writer) error {
	for at := uint64(0); at < o.Size; {
		part, err := d.Part(ctx, bucket, o, at, readPart)
		if err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		at += uint64(len(part))
	}
	return nil
}

// ErrObjectChanged is the error when an object was changed while it was read.
var ErrObjectChanged = errors.New("was changed while it was read")

// Part returns the bytes from at on of an object that Head returned, at most most of them. The error is
// ErrObjectChanged if it is another object now.
func (d *ObjectData) Part(ctx context.Context, bucket string, o *Object, at, most uint64) ([]byte, error) {
	if at >= o.Size {
		return nil, nil
	}
	a, err := d.call(ctx, "get", bucket, nil, append([]string{o.Key, fmt.Sprintf("%d,%d", at, min(most, o.Size-at))},
		make([]string, conditionTexts)...)...)
	if err != nil {
		return nil, err
	}
	var now *Object
	if len(a.Texts) > 0 {
		if now, err = readObject(a.Texts[0]); err != nil {
			return nil, err
		}
	}
	if now == nil || now.version != o.version || len(a.Body) == 0 {
		return nil, fmt.Errorf("the object %q %w", o.Key, ErrObjectChanged)
	}
	return a.Body, nil
}

// Put stores an object in place of what has its key. Of o only Key, ContentType and Metadata count.
func (d *ObjectData) Put(ctx context.Context, bucket string, o *Object, data []byte) error {
	texts := make([]string, putTexts)
	texts[0], texts[3+conditionTexts] = o.Key, o.ContentType // httpFields begin with it
	for name, value := range o.Metadata {
		texts = append(texts, name, value)
	}
	_, err := d.call(ctx, "put", bucket, data, texts...)
	return err
}

// Delete removes an object. It is no error if it is not there.
func (d *ObjectData) Delete(ctx context.Context, bucket, key string) error {
	if err := d.exists(ctx); err != nil {
		return err
	}
	_, err := d.call(ctx, "delete", bucket, nil, key)
	return err
}
