package bindings

import (
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // a checksum that R2 has
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

const (
	// maxTries is how often a change of an object is tried while others change it at the same time.
	maxTries = 16
	// putTime is how long a put may take. A sweep leaves alone chunks that are not much older.
	putTime = time.Minute
	// cleanTime is how long the removal of what is no longer needed may take.
	cleanTime = 10 * time.Second

	putTexts = 3 + conditionTexts + len(httpFields) // besides names and values of customMetadata
)

// upload is a put under way.
type upload struct {
	named
	info jetstream.ObjectInfo
	cond condition
	data []byte
}

// put has the arguments key, algorithm and checksum (hex), condition, the six values of httpMetadata ("" = none), and
// names and values of customMetadata. It answers with the object; with nothing if the condition is not met.
func (o *objects) put(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	u, err := readPut(c)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	b, err := o.open(ctx, c, len(c.Texts))
	if err != nil {
		return lifecycle.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	old, err := o.read(ctx, u.named, b.copies > 1)
	if err != nil {
		return lifecycle.Answer{}, o.failed(c, err)
	}
	if !u.cond.met(old.there()) {
		return lifecycle.Answer{}, nil
	}
	c.Wrote.Store(true)
	err = o.upload(ctx, b, u)
	if resources.IsFull(err) && o.sweep(ctx, b, c.Owner, time.Now()) > 0 {
		err = o.upload(ctx, b, u)
	}
	if err != nil {
		return lifecycle.Answer{}, o.failed(c, err)
	}
	v, err := o.describe(ctx, b, u, old)
	if v == nil || err != nil {
		return lifecycle.Answer{}, err
	}
	return lifecycle.Answer{Texts: []string{v.describe(c.Texts[0], nil, true, true)}}, nil
}

// describe makes what was uploaded the object, in place of old. It returns nil if the condition is not met any more. It
// removes the chunks of what it replaces; its own if it fails.
func (o *objects) describe(ctx context.Context, b *bucket, u *upload, old *version) (*version, error) {
	c := &lifecycle.Call{Owner: u.owner}
	body, err := json.Marshal(u.info)
	if err != nil {
		return nil, err
	}
	for range maxTries {
		m := nats.NewMsg(u.meta())
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		m.Header.Set(headerVersion, u.info.NUID)
		m.Data = body
		ack, err := o.publish(ctx, u.stream(), objectBytes(o.policy(u.owner)), m,
			jetstream.WithExpectLastSequencePerSubject(old.last()))
		var api *jetstream.APIError
		switch {
		case err == nil:
			if old.there() != nil && plainToken(old.NUID) {
				o.purge(ctx, b, u.chunks(old.NUID))
			}
			ms, _ := strconv.ParseInt(u.info.Headers.Get(headerUploaded), 10, 64)
			return &version{u.info, ack.Sequence, time.UnixMilli(ms)}, nil
		case !errors.As(err, &api):
			// It is not known whether it was stored. A sweep finds the chunks if it was not.
			return nil, o.failed(c, err)
		case api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence:
			o.purge(ctx, b, u.chunks(u.info.NUID))
			return nil, o.failed(c, err)
		}
		if old, err = o.read(ctx, u.named, true); err != nil {
			o.purge(ctx, b, u.chunks(u.info.NUID))
			return nil, o.failed(c, err)
		}
		if !u.cond.met(old.there()) {
			o.purge(ctx, b, u.chunks(u.info.NUID))
			return nil, nil
		}
	}
	o.purge(ctx, b, u.chunks(u.info.NUID))
	return nil, errors.New("Reduce your concurrent request rate for the same object. (10058)") //nolint:staticcheck // Cloudflare's words
}

// purge removes all messages of a subject, also when ctx has ended. What it cannot remove, a sweep finds.
func (o *objects) purge(ctx context.Context, b *bucket, subject string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if err := b.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		o.cfg.Log.Debug().Err(err).Str("subject", subject).Msg("chunks of an object are left to a sweep")
	}
}

// upload stores the chunks of u, all or none. Each upload has a version of its own.
func (o *objects) upload(ctx context.Context, b *bucket, u *upload) error {
	u.info.NUID = rand.Text()
	subject, from := u.chunks(u.info.NUID), base64.URLEncoding.EncodeToString([]byte(u.name))
	sequences := make([]uint64, 0, len(u.data)/chunkBytes+1)
	for rest := u.data; len(rest) > 0; {
		m := nats.NewMsg(subject)
		m.Header.Set(headerObject, from)
		m.Data = rest[:min(len(rest), chunkBytes)]
		rest = rest[len(m.Data):]
		ack, err := o.publish(ctx, u.stream(), objectBytes(o.policy(u.owner)), m)
		if err != nil {
			o.purge(ctx, b, subject)
			return err
		}
		sequences = append(sequences, ack.Sequence)
	}
	u.info.Chunks = uint32(len(sequences))
	if len(sequences) > 0 {
		u.info.Headers[headerChunks] = []string{runs(sequences)}
	}
	return nil
}

// algorithms are the checksums that a put may name, besides MD5: their lengths in bytes, and what the messages call
// them.
var algorithms = map[string]struct {
	name string
	of   func() hash.Hash
}{
	"sha1": {"SHA-1", sha1.New}, "sha256": {"SHA-256", sha256.New}, "sha384": {"SHA-384", sha512.New384},
	"sha512": {"SHA-512", sha512.New},
}

func readPut(c *lifecycle.Call) (*upload, error) {
	if len(c.Texts) < putTexts || (len(c.Texts)-putTexts)%2 != 0 {
		return nil, fmt.Errorf("%d arguments", len(c.Texts))
	}
	n, err := object(c, c.Texts[0])
	if err != nil {
		return nil, err
	}
	u := &upload{named: n, data: c.Body}
	if len(u.data) > maxObject {
		//nolint:staticcheck // Cloudflare's words
		return nil, fmt.Errorf("Your proposed upload of %d bytes exceeds the maximum allowed object size of %d. (100100)", len(u.data), maxObject)
	}
	if u.cond, err = readCondition(c.Texts[3:]); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(u.data)
	u.info = jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: n.name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkBytes}},
		Bucket:     ObjectsBucket(c.Owner), Size: uint64(len(u.data)),
		Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:]),
	}
	u.info.Headers = nats.Header{headerMD5: {md5Of(u.data)},
		headerUploaded: {strconv.FormatInt(time.Now().UnixMilli(), 10)}}
	if err := u.readSum(c.Texts[1], strings.ToLower(c.Texts[2])); err != nil {
		return nil, err
	}
	size := 0
	for i, f := range httpFields {
		value := c.Texts[3+conditionTexts+i]
		if i == len(httpFields)-1 {
			t, err := readTime(value)
			if err != nil {
				return nil, err
			}
			if value = ""; t != nil {
				value = strconv.FormatInt(t.UnixMilli(), 10)
			}
		}
		if size += len(value); value != "" {
			u.info.Headers[f[1]] = []string{value}
		}
	}
	if size > maxHTTPMetadata {
		return nil, errTooMuchMetadata
	}
	size = 0
	custom := c.Texts[putTexts:]
	for i := 0; i < len(custom); i += 2 {
		if u.info.Metadata == nil {
			u.info.Metadata = map[string]string{}
		}
		u.info.Metadata[custom[i]] = custom[i+1]
		size += len(custom[i]) + len(custom[i+1])
	}
	if size > maxObjectMetadata {
		return nil, errTooMuchMetadata
	}
	return u, nil
}

var errTooMuchMetadata = errors.New("Your metadata headers exceed the maximum allowed metadata size. (10012)") //nolint:staticcheck // Cloudflare's words

// readSum compares the checksum that the caller named with that of the data.
func (u *upload) readSum(algorithm, want string) error {
	if algorithm == "" {
		return nil
	}
	name, have := "MD5", u.info.Headers.Get(headerMD5)
	if algorithm != "md5" {
		a, ok := algorithms[algorithm]
		if !ok {
			return fmt.Errorf("there is no checksum %q", algorithm)
		}
		h := a.of()
		_, _ = h.Write(u.data) // it never fails
		name, have = a.name, hex.EncodeToString(h.Sum(nil))
		u.info.Headers[headerSum] = []string{algorithm + " " + have}
	}
	if have != want {
		//nolint:staticcheck // Cloudflare's words
		return fmt.Errorf("The %s checksum you specified did not match what we received.\nYou provided a %s checksum with value: %s\nActual %s was: %s (10037)", name, name, want, name, have)
	}
	return nil
}

// remove has keys as arguments. It is no error if one is not there.
func (o *objects) remove(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	if len(c.Texts) > maxDeleted {
		return lifecycle.Answer{}, fmt.Errorf("at most %d keys can be deleted at once", maxDeleted)
	}
	names := make([]named, len(c.Texts))
	for i, key := range c.Texts {
		var err error
		if names[i], err = object(c, key); err != nil {
			return lifecycle.Answer{}, err
		}
	}
	b, err := o.open(ctx, c, len(c.Texts))
	if err != nil {
		return lifecycle.Answer{}, err
	}
	c.Wrote.Store(true)
	err = inParallel(len(names), func(i int) error { return o.removeOne(ctx, b, names[i]) })
	if err != nil {
		err = o.failed(c, err)
	}
	return lifecycle.Answer{}, err
}

// removeOne removes an object without a trace: a marker would take the owner's bytes. A version that is put at the same
// time stays.
func (o *objects) removeOne(ctx context.Context, b *bucket, n named) error {
	v, err := o.read(ctx, n, b.copies > 1)
	if v == nil || err != nil {
		return err
	}
	if err := b.stream.Purge(ctx, jetstream.WithPurgeSubject(n.meta()), jetstream.WithPurgeSequence(v.seq+1)); err != nil {
		return err
	}
	if plainToken(v.NUID) && v.NUID != "" {
		o.purge(ctx, b, n.chunks(v.NUID))
	}
	return nil
}

// inParallel calls f for 0 to n-1, some at once, and returns the errors.
func inParallel(n int, f func(i int) error) error {
	const atOnce = 8
	var wg sync.WaitGroup
	errs := make([]error, min(n, atOnce))
	for w := range errs {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += atOnce {
				errs[w] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
