package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
)

// ObjectList is a page of objects.
type ObjectList struct {
	Objects []*bindings.Object `json:"objects"`
	Next    string             `json:"next,omitempty"` // "" at the end
}

// GetObject asks for an object.
type GetObject struct {
	OwnerObject
	Data bool   `json:"data,omitempty"` // with a part of its data
	From uint64 `json:"from,omitempty"` // byte where the part begins
}

// GotObject is an object, with as much of its data as a message takes.
type GotObject struct {
	Object *bindings.Object `json:"object"`
	Part   []byte           `json:"part,omitempty"`
	Next   uint64           `json:"next,omitempty"` // where the next part begins; 0 at the end
}

// PutObject stores an object, whose data came in parts as a body of its owner.
type PutObject struct {
	OwnerObject
	Body        UploadedBody      `json:"body"`
	ContentType string            `json:"contentType,omitempty"`
	Metadata    map[string]string `json:"customMetadata,omitempty"`
}

// SizedObject is how many bytes of an object were stored or removed.
type SizedObject struct {
	Bytes uint64 `json:"bytes"`
}

// listObjects lists objects of a bucket, sorted by the bytes of their keys.
func (od *ownerData) listObjects(ctx context.Context, r ListObjects) (ObjectList, error) {
	list := ObjectList{Objects: []*bindings.Object{}}
	limit, err := listed(r.Limit)
	if err != nil {
		return list, err
	}
	room := od.ops.answerRoom()
	err = od.objects(ctx, r.Owner, r.Bucket, func(d *bindings.ObjectData) (err error) {
		list.Next, err = d.ObjectPage(ctx, r.Bucket, r.Prefix, r.After, limit, func(o *bindings.Object) bool {
			return fits(&room, o, len(list.Objects), func() { list.Objects = append(list.Objects, o) })
		})
		return err
	})
	return list, err
}

// object returns an object, which is there.
func (r OwnerObject) object(ctx context.Context, d *bindings.ObjectData) (*bindings.Object, error) {
	o, err := d.Head(ctx, r.Bucket, r.Key)
	if err == nil && o == nil {
		err = &Error{Code: http.StatusNotFound, Text: fmt.Sprintf("%s/%s has no object %q", r.Owner, r.Bucket, r.Key)}
	}
	return o, err
}

// getObject returns an object, with a part of its data if it is asked for.
func (od *ownerData) getObject(ctx context.Context, r GetObject) (answer GotObject, err error) {
	err = od.objects(ctx, r.Owner, r.Bucket, func(d *bindings.ObjectData) (err error) {
		if answer.Object, err = r.object(ctx, d); err != nil || !r.Data {
			return err
		}
		size := answer.Object.Size
		text, err := json.Marshal(answer)
		switch room := od.ops.answerRoom() - len(text); {
		case err != nil:
			return err
		case r.From > size:
			return wrongField("from", " is %d: the object has %d bytes", r.From, size)
		case room < 4:
			return &Error{Code: http.StatusRequestEntityTooLarge, Text: "an answer has no room for data: max_payload is too small"}
		default:
			answer.Part, err = d.Part(ctx, r.Bucket, answer.Object, r.From, uint64(room/4*3)) // base64
		}
		if end := r.From + uint64(len(answer.Part)); err == nil && end < size {
			answer.Next = end
		}
		return err
	})
	return answer, err
}

// putObject stores an object in place of what has its key.
func (od *ownerData) putObject(ctx context.Context, r PutObject) (SizedObject, error) {
	if err := checkStore(r.Owner, "bucket", r.Bucket); err != nil {
		return SizedObject{}, err
	}
	if err := r.Body.check(bindings.MaxObject); err != nil {
		return SizedObject{}, err
	}
	o := &bindings.Object{Key: r.Key, ContentType: r.ContentType, Metadata: r.Metadata}
	err := od.bodies.with(ctx, r.Owner, r.Body, func(data []byte) (bool, error) {
		return false,
			od.objects(ctx, r.Owner, r.Bucket, func(d *bindings.ObjectData) error { return d.Put(ctx, r.Bucket, o, data) })
	})
	return SizedObject{uint64(r.Body.Bytes)}, err
}

// removeObject removes an object with its data.
func (od *ownerData) removeObject(ctx context.Context, r OwnerObject) (answer SizedObject, err error) {
	err = od.objects(ctx, r.Owner, r.Bucket, func(d *bindings.ObjectData) error {
		o, err := r.object(ctx, d)
		if err != nil {
			return err
		}
		answer.Bytes = o.Size
		return d.Delete(ctx, r.Bucket, r.Key)
	})
	return answer, err
}

// Object returns an object without its data.
func Object(ctx context.Context, c *Client, r OwnerObject) (*bindings.Object, error) {
	got, err := Ask(ctx, c, ObjectsGet, GetObject{OwnerObject: r})
	return got.Object, err
}

// CopyObject writes the data of an object that Object returned to w, part by part. It fails if it is another one now.
func CopyObject(ctx context.Context, c *Client, r OwnerObject, o *bindings.Object, w io.Writer) error {
	for at := uint64(0); at < o.Size; {
		got, err := Ask(ctx, c, ObjectsGet, GetObject{OwnerObject: r, Data: true, From: at})
		if err != nil {
			return err
		}
		if got.Object == nil || got.Object.Etag != o.Etag || got.Object.Size != o.Size || len(got.Part) == 0 {
			return fmt.Errorf("the object %q %w", r.Key, bindings.ErrObjectChanged)
		}
		if _, err := w.Write(got.Part); err != nil {
			return err
		}
		at += uint64(len(got.Part))
	}
	return nil
}
