package bindings

import (
	"context"
	"strconv"
)

// What an owner's people do with its data through a process: within the limits of the owner's calls there, in pages.

// Data returns the data of an owner, within the owner's limits in this process. hold is told of the bytes that a list
// takes, and may refuse them.
func (b *Bindings) Data(owner string, hold func(bytes int) error) *Data {
	d := dataOf(b.kv, owner)
	d.limits, d.hold = b, hold
	return d
}

// Objects returns the objects of an owner, as Data does.
func (b *Bindings) Objects(owner string, hold func(bytes int) error) *ObjectData {
	d := objectsOf(b.objects, owner)
	d.limits, d.hold = b, hold
	return d
}

// KeyPage calls each for at most limit keys of a namespace that begin with prefix, sorted by bytes, until it returns
// false: such a key is left to the next page. cursor is "" for the first page. It returns the cursor of the next page,
// "" for none.
func (d *Data) KeyPage(ctx context.Context, namespace, prefix, cursor string, limit int,
	each func(Key) bool) (string, error) {
	if err := d.exists(ctx); err != nil {
		return "", err
	}
	a, err := d.call(ctx, "list", namespace, nil, prefix, strconv.Itoa(limit), cursor)
	if err != nil {
		return "", err
	}
	last := ""
	for _, k := range keysOf(a) {
		if !each(k) {
			b, err := d.kv.buckets.of(ctx, d.owner)
			if err != nil {
				return "", err
			}
			base := "$KV." + KVBucket(d.owner) + "." + namespace + "."
			return b.cut(base, prefix, cursor, a.Texts[0], last), nil
		}
		last = k.Name
	}
	return a.Texts[0], nil
}

// ObjectPage calls each for objects of a bucket, as KeyPage does.
func (d *ObjectData) ObjectPage(ctx context.Context, bucket, prefix, cursor string, limit int,
	each func(*Object) bool) (string, error) {
	if err := d.exists(ctx); err != nil {
		return "", err
	}
	a, err := d.call(ctx, "list", bucket, nil, prefix, strconv.Itoa(limit), cursor, "", "", "1", "1")
	if err != nil {
		return "", err
	}
	last := ""
	for _, text := range objectTexts(a) {
		o, err := readObject(text)
		if err != nil {
			return "", err
		}
		if !each(o) {
			b, err := d.objects.buckets.of(ctx, d.owner)
			if err != nil {
				return "", err
			}
			return b.cut(bucket+"/", prefix+"\x00", cursor, a.Texts[0], last), nil
		}
		last = o.Key
	}
	return a.Texts[0], nil
}

// cut is the cursor of the page after one that was cut behind the key last; "" = before its first key. before and next
// are the cursors of the page and of the one that would have followed.
func (b *bucket) cut(base, signed, before, next, last string) string {
	if last == "" {
		return before
	}
	_, snapshot, _ := b.readCursor(base, signed, next) // "" has none
	return b.cursor(base, signed, last, snapshot)
}
