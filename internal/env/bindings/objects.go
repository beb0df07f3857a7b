package bindings

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // R2's etag
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	maxObjectKey      = 1024     // bytes of UTF-8
	maxObject         = 25 << 20 // bytes; js/bindings/objects.js
	maxObjectMetadata = 8192     // bytes of all names and values of customMetadata
	maxHTTPMetadata   = 8192     // bytes of all values of httpMetadata
	maxDeleted        = 1000     // keys of one delete()
	chunkBytes        = 128 << 10
)

// ObjectsBucket is the name of the object store with the objects of an owner. It exists from the first call on.
func ObjectsBucket(owner string) string { return "PINWHEEL_OBJ_" + owner }

// objectBytes is how many bytes the object store of an owner with this policy may have.
func objectBytes(p workers.Policy) int64 {
	return cmp.Or(int64(p.ObjectBytes), workers.DefaultObjectBytes)
}

// ObjectStore is the object store of an owner with this policy, as it is created.
func ObjectStore(owner string, p workers.Policy, replicas int) jetstream.ObjectStoreConfig {
	size := min(objectBytes(p), firstBytes)
	return jetstream.ObjectStoreConfig{
		Bucket: ObjectsBucket(owner), Description: "Objects of Pinwheel's owner " + owner + ": <bucket>/<key>",
		MaxBytes: size, Replicas: replicas,
		Storage: jetstream.FileStorage,
	}
}

// objects is Cloudflare's R2Bucket on one NATS object store for each owner. It writes the messages of the store itself:
// a put of nats.go is no compare-and-set, and two at once leave chunks behind.
type objects struct {
	backend
	buckets opened[*bucket]
	lists   *lists
}

func newObjects(b backend, lists *lists) *objects {
	o := &objects{backend: b, lists: lists}
	o.buckets.create = o.create
	o.buckets.bound = func(owner string) int { return o.policy(owner).ObjectBytes }
	return o
}

func (o *objects) method(name string) method {
	switch name {
	case "head":
		return o.head
	case "get":
		return o.get
	case "put":
		return o.put
	case "delete":
		return o.remove
	case "list":
		return o.list
	}
	return nil
}

// create creates the object store of an owner, or opens it.
func (o *objects) create(ctx context.Context, owner string) (*bucket, error) {
	p, name := o.policy(owner), resources.ObjectsStream(ObjectsBucket(owner))
	r := resources.Reconciler{JS: o.js, Log: o.cfg.Log, OnlyMissing: o.cfg.OnlyMissing, Grows: true}
	_, err := r.Objects(ctx, ObjectStore(owner, p, o.cfg.Replicas))
	if err == nil {
		err = o.bound(ctx, name, p.ObjectBytes)
	}
	if err != nil {
		_, err = inWords(o.told(name, err), "objectBytes")
		return nil, err
	}
	s, err := o.js.Stream(ctx, name)
	if err != nil {
		_, err = inWords(err, "objectBytes")
		return nil, err
	}
	info := s.CachedInfo()
	// A forged cursor says no more than startAfter does. So what all processes know of the store is secret enough.
	secret := binary.BigEndian.AppendUint64([]byte(info.Config.Name), uint64(info.Created.UnixNano()))
	return &bucket{nc: o.js.Conn(), stream: s, copies: info.Config.Replicas, secret: secret}, nil
}

// named is an object of an owner, by its name in the store.
type named struct {
	owner, name string
}

func (n named) stream() string { return resources.ObjectsStream(ObjectsBucket(n.owner)) }

// meta is the subject of the message that says what the object is.
func (n named) meta() string {
	return "$O." + ObjectsBucket(n.owner) + ".M." + base64.URLEncoding.EncodeToString([]byte(n.name))
}

// chunks is the subject of the data of one version of an object.
func (n named) chunks(version string) string { return "$O." + ObjectsBucket(n.owner) + ".C." + version }

// object returns the object with a key, in the bucket of the binding.
func object(c *lifecycle.Call, key string) (named, error) {
	if len(key) > maxObjectKey {
		return named{}, errors.New("The specified object name is not valid. (10020)") //nolint:staticcheck // Cloudflare's words
	}
	return named{c.Owner, c.Binding.Value + "/" + key}, nil
}

// open returns the owner's object store.
func (o *objects) open(ctx context.Context, c *lifecycle.Call, texts int) (*bucket, error) {
	if len(c.Texts) != texts {
		return nil, fmt.Errorf("%d arguments, not %d", len(c.Texts), texts)
	}
	return o.buckets.of(ctx, c.Owner)
}

func (o *objects) failed(c *lifecycle.Call, err error) error {
	gone, err := inWords(err, "objectBytes")
	if gone {
		o.buckets.forget(c.Owner)
	}
	return err
}

// The names of headers in the description of an object. HTTP metadata has its own names.
const (
	headerMD5      = "Pinwheel-Md5"      // hex; R2's etag
	headerSum      = "Pinwheel-Sum"      // algorithm and hex that the put named, with a blank between
	headerUploaded = "Pinwheel-Uploaded" // milliseconds since 1970
	headerChunks   = "Pinwheel-Chunks"   // sequences of the chunks: FIRST+COUNT, with commas between

	// Headers of messages. A description has the version in its header, so that a sweep need not read it. A chunk has the
	// name of its object there, encoded.
	headerVersion = "Pinwheel-Version"
	headerObject  = "Pinwheel-Object"
)

// version is one version of an object. A nil version is an object that is not there.
type version struct {
	jetstream.ObjectInfo
	seq      uint64    // of the message that describes it
	uploaded time.Time // whole milliseconds
}

// read reads what an object is, from the leader or from any copy of the stream.
func (o *objects) read(ctx context.Context, n named, leader bool) (*version, error) {
	var v version
	var data []byte
	if leader {
		m, err := stored.Get(ctx, o.nc, n.stream(), stored.Request{Last: n.meta()})
		if err != nil {
			return nil, unlessNone(err)
		}
		v.seq, v.uploaded, data = m.Sequence, m.Time, m.Data
	} else {
		h, d, err := stored.Last(ctx, o.nc, n.stream(), n.meta())
		if err != nil {
			return nil, unlessNone(err)
		}
		v.seq, _ = strconv.ParseUint(h.Get(jetstream.SequenceHeader), 10, 64)
		v.uploaded, _ = time.Parse(time.RFC3339Nano, h.Get(jetstream.TimeStampHeaer))
		data = d
	}
	// Others may have written it by hand. What cannot be read is no object, and a put replaces it.
	if json.Unmarshal(data, &v.ObjectInfo) != nil || v.NUID == "" || !plainToken(v.NUID) || v.Opts != nil &&
		v.Opts.Link != nil {
		v.Deleted = true
	}
	if ms, err := strconv.ParseInt(v.Headers.Get(headerUploaded), 10, 64); err == nil {
		v.uploaded = time.UnixMilli(ms)
	}
	v.uploaded = v.uploaded.Truncate(time.Millisecond)
	return &v, nil
}

func unlessNone(err error) error {
	if errors.Is(err, stored.ErrNone) {
		return nil
	}
	return err
}

func plainToken(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 127 || !plain(byte(r)) })
}

// there is v if it is an object, and nil if there is none or it was deleted.
func (v *version) there() *version {
	if v == nil || v.Deleted {
		return nil
	}
	return v
}

// last is the sequence that a change of the object replaces; 0 = none.
func (v *version) last() uint64 {
	if v == nil {
		return 0
	}
	return v.seq
}

// etag is the MD5 sum of the object, as at Cloudflare. Objects that the nats command has put have none.
func (v *version) etag() string {
	if sum := v.Headers.Get(headerMD5); sum != "" {
		return sum
	}
	return v.NUID
}

// described is an object for js/bindings/objects.js.
type described struct {
	Key      string            `json:"key"`
	Version  string            `json:"version"`
	Size     uint64            `json:"size"`
	Etag     string            `json:"etag"`
	Uploaded int64             `json:"uploaded"` // milliseconds since 1970
	HTTP     map[string]string `json:"http,omitempty"`
	Custom   map[string]string `json:"custom,omitempty"`
	Sums     map[string]string `json:"sums,omitempty"`  // algorithm to hex
	Range    *span             `json:"range,omitempty"` // of get() and head()
}

// span is a part of an object.
type span struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// httpFields are the fields of httpMetadata, and the headers that have them. cacheExpiry is in milliseconds since 1970.
var httpFields = [...][2]string{
	{"contentType", "Content-Type"}, {"contentLanguage", "Content-Language"},
	{"contentDisposition", "Content-Disposition"},
	{"contentEncoding", "Content-Encoding"}, {"cacheControl", "Cache-Control"}, {"cacheExpiry", "Pinwheel-Expires"},
}

// describe returns the JSON of an object. part is nil where Cloudflare's result has no range.
func (v *version) describe(key string, part *span, http, custom bool) string {
	d := described{Key: key, Version: v.NUID, Size: v.Size, Etag: v.etag(), Uploaded: v.uploaded.UnixMilli(), Range: part,
		Sums: map[string]string{}}
	if sum := v.Headers.Get(headerMD5); sum != "" {
		d.Sums["md5"] = sum
	}
	if name, sum, ok := strings.Cut(v.Headers.Get(headerSum), " "); ok {
		d.Sums[name] = sum
	}
	if custom {
		d.Custom = v.Metadata
	}
	if http {
		d.HTTP = map[string]string{}
		for _, f := range httpFields {
			if value := v.Headers.Get(f[1]); value != "" {
				d.HTTP[f[0]] = value
			}
		}
	}
	text, _ := json.Marshal(d) // strings and numbers
	return string(text)
}

func md5Of(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // R2's etag
	return hex.EncodeToString(sum[:])
}
