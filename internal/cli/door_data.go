package cli

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/bindings"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

// ownedStore is a namespace or a bucket at an owner's door.
type ownedStore struct {
	namespace
	e *env
	c *control.Client
}

// withStoreAtDoor calls f with the store in text: OWNER/NAME. what is what the name is one of.
func withStoreAtDoor(e *env, text, what string, f func(ownedStore) error) error {
	n, err := parseStore(text, what)
	switch {
	case err != nil:
		return err
	case n.owner != e.cfg.Owner: // before anything is sent
		return usage("%s is not of owner %s, as whom PINWHEEL_OWNER says you come", text, e.cfg.Owner)
	}
	return withDoor(e, func(c *control.Client) error { return f(ownedStore{n, e, c}) })
}

// store stores data in parts, as a body of the owner.
func (o ownedStore) store(ctx context.Context, data []byte) (control.UploadedBody, error) {
	up, err := openUpload(o.e)
	if err != nil {
		return control.UploadedBody{}, err
	}
	defer up.close()
	return storeBody(ctx, up, o.owner, data)
}

func storeBody(ctx context.Context, up upload, owner string, data []byte) (control.UploadedBody, error) {
	b, err := up.Store(ctx, owner, bytes.NewReader(data))
	return control.UploadedBody{ID: b.ID, Parts: b.Parts, Bytes: len(data)}, err
}

// doorKeys are the keys and values of an owner, at its door.
type doorKeys struct{ ownedStore }

func (d doorKeys) key(namespace, key string) control.OwnerKey {
	return control.OwnerKey{Owner: d.owner, Namespace: namespace, Key: key}
}

func (d doorKeys) Keys(ctx context.Context, namespace, prefix string, each func(bindings.Key) error) error {
	r := control.ListKeys{Owner: d.owner, Namespace: namespace, Prefix: prefix}
	return everyPage(0, func(limit int) (int, bool, error) {
		r.Limit = limit
		page, err := d.c.Keys(ctx, r)
		for _, k := range page.Keys {
			if err == nil {
				err = each(k)
			}
		}
		r.After = page.Next
		return len(page.Keys), page.Next != "", err
	})
}

func (d doorKeys) Get(ctx context.Context, namespace, key string) (*bindings.Value, error) {
	return d.c.Value(ctx, d.key(namespace, key))
}

func (d doorKeys) Put(ctx context.Context, namespace, key string, v bindings.Value, ttl time.Duration) (err error) {
	r := control.PutValue{OwnerKey: d.key(namespace, key), TTL: int64(ttl / time.Second)}
	if len(v.Metadata) > 0 {
		r.Metadata = v.Metadata
	}
	if d.c.FitsRequest(v.Data) {
		r.Value = v.Data
	} else {
		body, err := d.store(ctx, v.Data)
		if err != nil {
			return err
		}
		r.Body = &body
	}
	_, err = d.c.PutValue(ctx, r)
	return err
}

func (d doorKeys) Delete(ctx context.Context, namespace, key string) error {
	_, err := d.c.RemoveKey(ctx, d.key(namespace, key))
	return err
}

// doorObjects are the objects of an owner, at its door.
type doorObjects struct{ ownedStore }

func (d doorObjects) object(bucket, key string) control.OwnerObject {
	return control.OwnerObject{Owner: d.owner, Bucket: bucket, Key: key}
}

func (d doorObjects) List(ctx context.Context, bucket, prefix string, each func(*bindings.Object) error) error {
	r := control.ListObjects{Owner: d.owner, Bucket: bucket, Prefix: prefix}
	return everyPage(0, func(limit int) (int, bool, error) {
		r.Limit = limit
		page, err := d.c.Objects(ctx, r)
		for _, o := range page.Objects {
			if err == nil {
				err = each(o)
			}
		}
		r.After = page.Next
		return len(page.Objects), page.Next != "", err
	})
}

func (d doorObjects) Head(ctx context.Context, bucket, key string) (*bindings.Object, error) {
	return d.c.Object(ctx, d.object(bucket, key))
}

func (d doorObjects) Copy(ctx context.Context, bucket string, o *bindings.Object, w io.Writer) error {
	return d.c.CopyObject(ctx, d.object(bucket, o.Key), o, w)
}

func (d doorObjects) Put(ctx context.Context, bucket string, o *bindings.Object, data []byte) error {
	body, err := d.store(ctx, data)
	if err != nil {
		return err
	}
	_, err = d.c.PutObject(ctx, control.PutObject{OwnerObject: d.object(bucket, o.Key), Body: body, ContentType: o.ContentType, Metadata: o.Metadata})
	return err
}

func (d doorObjects) Delete(ctx context.Context, bucket, key string) error {
	_, err := d.c.RemoveObject(ctx, d.object(bucket, key))
	return err
}
