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

	"github.com/pinwheel-run/pinwheel/events"
)

// MaxObject is the largest object of a put, bytes.
const MaxObject = maxObject

// ObjectData is the objects of one owner, for people and tools. Workers use Bindings.
type ObjectData struct {
	store
	objects *objects
}

// OpenObjects returns the objects of an owner with this policy. It does not talk to NATS.
func OpenObjects(nc *nats.Conn, js jetstream.JetStream, cfg Config, owner string, p events.Policy) *ObjectData {
	s := store{js, owner, named{owner: owner}.stream(), events.BindingObjects, "bucket", ErrNoObjects}
	return &ObjectData{s, newObjects(backend{nc, js, cfg, func(string) events.Policy { return p }}, &lists{})}
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
	return &Object{d.Key, d.Size, d.Etag, time.UnixMilli(d.Uploaded).UTC(), d.HTTP["contentType"], d.Custom, d.Version}, nil
}

// List lists the objects of a bucket whose keys begin with prefix, sorted by bytes, in pages. It calls each for each object.
func (d *ObjectData) List(ctx context.Context, bucket, prefix string, each func(*Object) error) error {
	if err := d.exists(ctx); err != nil {
		return err
	}
	for cursor := ""; ; {
		a, err := d.call(ctx, d.objects.list, bucket, nil, prefix, "", cursor, "", "", "1", "1")
		if err != nil {
			return err
		}
		for _, text := range a.Texts[2:] { // after the cursor and the number of prefixes, which is 0 without a delimiter
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

// Head returns what an object is, or nil if it is not there.
func (d *ObjectData) Head(ctx context.Context, bucket, key string) (*Object, error) {
	if err := d.exists(ctx); err != nil {
		return nil, err
	}
	a, err := d.call(ctx, d.objects.head, bucket, nil, key)
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
		a, err := d.call(ctx, d.objects.get, bucket, nil, append([]string{o.Key, fmt.Sprintf("%d,%d", at, min(readPart, o.Size-at))}, make([]string, conditionTexts)...)...)
		if err != nil {
			return err
		}
		var now *Object
		if len(a.Texts) > 0 {
			if now, err = readObject(a.Texts[0]); err != nil {
				return err
			}
		}
		if now == nil || now.version != o.version || len(a.Body) == 0 {
			return fmt.Errorf("the object %q was changed while it was read", o.Key)
		}
		if _, err := w.Write(a.Body); err != nil {
			return err
		}
		at += uint64(len(a.Body))
	}
	return nil
}

// Put stores an object in place of what has its key. Of o only Key, ContentType and Metadata count.
func (d *ObjectData) Put(ctx context.Context, bucket string, o *Object, data []byte) error {
	texts := make([]string, putTexts)
	texts[0], texts[3+conditionTexts] = o.Key, o.ContentType // httpFields begin with it
	for name, value := range o.Metadata {
		texts = append(texts, name, value)
	}
	_, err := d.call(ctx, d.objects.put, bucket, data, texts...)
	return err
}

// Delete removes an object. It is no error if it is not there.
func (d *ObjectData) Delete(ctx context.Context, bucket, key string) error {
	if err := d.exists(ctx); err != nil {
		return err
	}
	_, err := d.call(ctx, d.objects.remove, bucket, nil, key)
	return err
}
