package assetstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
)

// Uploaded says what a deploy stored.
type Uploaded struct {
	Files int   // that were stored; the others were there
	Bytes int64 // of those, as they are
}

// Upload stores the files of an owner that are missing, and their list.
func (s *Store) Upload(ctx context.Context, owner string, f *assets.Folder) (up Uploaded, err error) {
	text, hash, err := f.List.Encode()
	if err != nil {
		return up, err
	}
	kv, err := s.bucket(ctx)
	if err != nil {
		return up, err
	}
	there, err := filesOf(ctx, kv, owner)
	if err != nil {
		return up, err
	}
	files := missingOf(f, there)
	for _, file := range files {
		up.Files++
		up.Bytes += file.size
	}
	if !there[hash] {
		files = append(files, &pendingFile{hash: hash, size: int64(len(text)),
			read: func() ([]byte, error) { return text, nil }})
	}
	if err = s.admit(ctx, owner, files, false); err == nil {
		err = s.put(ctx, owner, files)
	}
	if err == nil && up.Files > 0 {
		err = s.charge(ctx, owner, up.Bytes+int64(up.Files)*FileCost, -1)
	}
	if err != nil {
		return Uploaded{}, err
	}
	return up, nil
}

// missingOf are the files of a folder that are not there, in the order of their paths.
func missingOf(f *assets.Folder, there map[string]bool) (files []*pendingFile) {
	seen := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(f.List.Files)) {
		file := f.List.Files[path]
		if there[file.Hash] || seen[file.Hash] {
			continue
		}
		seen[file.Hash] = true
		files = append(files, &pendingFile{hash: file.Hash, size: file.Size, compress: assets.Compressible(file.Type),
			read: func() ([]byte, error) {
				data, _, err := f.Read(file.Hash)
				return data, err
			}})
	}
	return files
}

// put stores files that are not there.
func (s *Store) put(ctx context.Context, owner string, files []*pendingFile) error {
	b := &batch{js: s.js, owner: owner}
	for _, f := range files {
		data, err := f.read()
		if err != nil {
			return err
		}
		if err := b.add(ctx, f, data); err != nil {
			return storeError(err)
		}
	}
	return storeError(b.flush(ctx))
}

func storeError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store files in bucket %s: %w; PINWHEEL_ASSETS_MAX_BYTES bounds it", Bucket, err)
}

// filesOf are the hashes of the files that an owner has.
func filesOf(ctx context.Context, kv jetstream.KeyValue, owner string) (map[string]bool, error) {
	keys, err := kv.ListKeysFiltered(ctx, owner+".*")
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", owner, err)
	}
	there := map[string]bool{}
	for key := range keys.Keys() {
		if hash := key[len(owner)+1:]; assets.IsHash(hash) {
			there[hash] = true
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list files of %s: %w", owner, err)
	}
	return there, nil
}

// maxBatch is how many bytes of files wait for their PubAcks.
const maxBatch = 4 << 20

// batch publishes parts without waiting for each. A file's own key comes when all of its parts are stored, so a file
// that has a key is whole.
type batch struct {
	js      jetstream.JetStream
	owner   string
	waiting []jetstream.PubAckFuture
	bytes   int
	files   []*nats.Msg
}

// add publishes a file, compressed too if that makes it smaller.
func (b *batch) add(ctx context.Context, f *pendingFile, data []byte) error {
	stored := assets.Stored{Size: int64(len(data))}
	if err := b.parts(ctx, f.hash, assets.Plain, data); err != nil {
		return err
	}
	copies, err := f.smaller(ctx, data)
	if err != nil {
		return err
	}
	f.copies = nil
	for _, c := range copies {
		if err = b.parts(ctx, f.hash, c.encoding, c.data); err != nil {
			return err
		}
		if c.encoding == assets.Gzip {
			stored.Gzip = int64(len(c.data))
		} else {
			stored.Brotli = int64(len(c.data))
		}
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	b.files = append(b.files, &nats.Msg{Subject: subject(fileKey(b.owner, f.hash)), Data: value})
	if b.bytes >= maxBatch {
		return b.flush(ctx)
	}
	return nil
}

func subject(key string) string { return "$KV." + Bucket + "." + key }

// parts publishes a file in one encoding.
func (b *batch) parts(ctx context.Context, hash string, e assets.Encoding, data []byte) error {
	for n := 0; len(data) > 0; n++ {
		part := data[:min(len(data), assets.PartBytes)]
		data = data[len(part):]
		if err := b.publish(&nats.Msg{Subject: subject(partKey(b.owner, hash, e, n)), Data: part}); err != nil {
			return err
		}
		if b.bytes >= maxBatch {
			if err := b.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *batch) publish(m *nats.Msg) error {
	f, err := b.js.PublishMsgAsync(m)
	if err != nil {
		return err
	}
	b.waiting = append(b.waiting, f)
	b.bytes += len(m.Data)
	return nil
}

// wait waits until everything is stored that was published.
func (b *batch) wait(ctx context.Context) error {
	for _, f := range b.waiting {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.waiting, b.bytes = b.waiting[:0], 0
	return nil
}

// flush stores what was added.
func (b *batch) flush(ctx context.Context) error {
	if err := b.wait(ctx); err != nil {
		return err
	}
	for _, m := range b.files {
		if err := b.publish(m); err != nil {
			return err
		}
	}
	b.files = b.files[:0]
	return b.wait(ctx)
}

const (
	leastCompressed = 512 // bytes
	brotliLevel     = 9   // of 11: those above take many times as long
	largeFile       = 4 << 20
	largeLevel      = 5 // of Brotli for a large file, whose deploy must not wait long
)

// compressedCopy is a file as it is stored beside its plain bytes.
type compressedCopy struct {
	encoding assets.Encoding
	data     []byte
}

// copiesOf compresses a file. It leaves out copies that are hardly smaller.
func copiesOf(ctx context.Context, data []byte) (copies []compressedCopy, err error) {
	for _, e := range []assets.Encoding{assets.Gzip, assets.Brotli} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		small, err := shrink(e, data)
		if err != nil {
			return nil, err
		}
		if len(small) <= len(data)/10*9 {
			copies = append(copies, compressedCopy{e, small})
		}
	}
	return copies, nil
}

// shrink compresses a file.
func shrink(e assets.Encoding, data []byte) ([]byte, error) {
	var b bytes.Buffer
	level := brotliLevel
	if len(data) >= largeFile {
		level = largeLevel
	}
	var w io.WriteCloser = brotli.NewWriterLevel(&b, level)
	if e == assets.Gzip {
		w, _ = gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one of its own
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
