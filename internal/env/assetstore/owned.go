package assetstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// NewFile is a file to store.
type NewFile struct {
	Hash     string // SHA-256, hex. Add compares it with Data
	Data     []byte
	Compress bool // it is stored compressed too, where that makes it smaller
}

// FileCost is what a stored file counts as, in addition to its bytes: its keys take space too.
const FileCost = 4 << 10

// FullError says that an owner may not store that many bytes more.
type FullError struct{ Has, More, Most int64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("the stored files have %d bytes, these have %d, and all may have %d (assetBytes); each file counts %d more than it has", e.Has, e.More, e.Most, FileCost)
}

// WrongError says that files are not what their owner says of them.
type WrongError struct{ Text string }

func (e *WrongError) Error() string { return e.Text }

// MissingError says that files of a version are not stored.
type MissingError struct{ Files int }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d files of the version are not stored: upload them first", e.Files)
}

// Missing returns the hashes of which an owner has no file.
func (s *Store) Missing(ctx context.Context, owner string, hashes []string) (missing []string, err error) {
	for _, hash := range hashes {
		switch _, err := s.read(ctx, owner, hash); {
		case errors.Is(err, ErrNotFound):
			missing = append(missing, hash)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// Add stores the files that the owner lacks. All that it has may have most bytes, below 0 = any number. The error is a
// *WrongError when a hash is not that of its data, a *FullError when the owner may not have more, and that of
// Config.Room when the bucket has no room: nothing is stored then.
func (s *Store) Add(ctx context.Context, owner string, files []NewFile, most int64) (up Uploaded, err error) {
	var missing []*pendingFile
	seen := map[string]bool{}
	for _, f := range files {
		if assets.HashOf(f.Data) != f.Hash {
			return Uploaded{}, &WrongError{fmt.Sprintf("file %.80q has the SHA-256 %s", f.Hash, assets.HashOf(f.Data))}
		}
		if seen[f.Hash] {
			continue
		}
		seen[f.Hash] = true
		switch _, err := s.read(ctx, owner, f.Hash); {
		case errors.Is(err, ErrNotFound):
			missing = append(missing, &pendingFile{hash: f.Hash, size: int64(len(f.Data)), compress: f.Compress,
				read: func() ([]byte, error) { return f.Data, nil }})
			up.Files++
			up.Bytes += int64(len(f.Data))
		case err != nil:
			return Uploaded{}, err
		}
	}
	if len(missing) == 0 {
		return up, nil
	}
	if err = s.admit(ctx, owner, missing, most >= 0); err == nil {
		err = s.charge(ctx, owner, up.Bytes+int64(up.Files)*FileCost, most)
	}
	if err == nil { // if that fails, parts may be stored: they count until a sweep has deleted them
		err = s.put(ctx, owner, missing)
	}
	if err != nil {
		return Uploaded{}, err
	}
	return up, nil
}

// Check returns an error if files of a list are not stored as the list says: a *MissingError or a *WrongError. hash is
// that of the list.
func (s *Store) Check(ctx context.Context, owner, hash string) error {
	kv, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	there, err := entriesOf(ctx, kv, owner)
	if err != nil {
		return err
	}
	stored, ok := there[hash]
	switch {
	case !ok:
		return &MissingError{1}
	case stored.Size > assets.MaxListText:
		return &WrongError{fmt.Sprintf("the list of files has %d bytes: at most %d are allowed", stored.Size, assets.MaxListText)}
	}
	l, err := s.List(ctx, owner, hash)
	if err != nil {
		var wrong *assets.ListError
		if errors.As(err, &wrong) {
			return &WrongError{wrong.Error()}
		}
		return err
	}
	missing := 0
	for path, f := range l.Files {
		switch stored, ok := there[f.Hash]; {
		case !ok:
			missing++
		case stored.Size != f.Size:
			return &WrongError{fmt.Sprintf("list of files: the file at %q has %d bytes, and not %d", path, stored.Size, f.Size)}
		}
	}
	if missing > 0 {
		return &MissingError{missing}
	}
	return nil
}

// entriesOf are the files that an owner has, by hash.
func entriesOf(ctx context.Context, kv jetstream.KeyValue, owner string) (map[string]assets.Stored, error) {
	there := map[string]assets.Stored{}
	err := eachOf(ctx, kv, owner+".*", func(e jetstream.KeyValueEntry) error {
		hash := e.Key()[len(owner)+1:]
		if !assets.IsHash(hash) {
			return nil
		}
		var stored assets.Stored
		if err := json.Unmarshal(e.Value(), &stored); err != nil || stored.Size < 0 {
			return fmt.Errorf("file %s is damaged", hash)
		}
		there[hash] = stored
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", owner, err)
	}
	return there, nil
}

// eachOf calls do for each key that there is.
func eachOf(ctx context.Context, kv jetstream.KeyValue, keys string, do func(jetstream.KeyValueEntry) error,
	opts ...jetstream.WatchOpt) error {
	w, err := kv.Watch(ctx, keys, append(opts, jetstream.IgnoreDeletes())...)
	if err != nil {
		return err
	}
	defer resources.StopWatch(w)
	for {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("the watch has ended")
			case e == nil:
				return nil
			}
			if err := do(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// storedKey is a key with how many bytes an owner has stored, as FileCost counts them. It is made when the owner stores
// files by itself. It is no hash.
func storedKey(owner string) string { return owner + ".stored" }

type usage struct {
	Bytes int64 `json:"bytes"`
}

// usageTries is how often charge tries while others change the number.
const usageTries = 50

// charge counts n bytes more for an owner, or returns a *FullError. most below 0 is no bound.
func (s *Store) charge(ctx context.Context, owner string, n, most int64) error {
	kv, err := s.bucket(ctx)
	if err != nil {
		return err
	}
	for range usageTries {
		u, revision, err := usageOf(ctx, kv, owner)
		switch {
		case err != nil:
			return err
		case revision == 0 && most < 0: // nothing is counted for this owner yet
			return nil
		case revision == 0:
			if u.Bytes, err = countedOf(ctx, kv, owner); err != nil {
				return err
			}
		}
		if most >= 0 && u.Bytes+n > most {
			return &FullError{u.Bytes, n, most}
		}
		u.Bytes = max(0, u.Bytes+n)
		if err = setUsage(ctx, kv, owner, u, revision); err == nil || !isConflict(err) {
			return storeError(err)
		}
	}
	return fmt.Errorf("count files of %s: others change the number all the time", owner)
}

// usageOf reads what is counted for an owner. revision is 0 if nothing is.
func usageOf(ctx context.Context, kv jetstream.KeyValue, owner string) (u usage, revision uint64, err error) {
	e, err := kv.Get(ctx, storedKey(owner))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return u, 0, nil
	}
	if err == nil {
		revision = e.Revision()
		err = json.Unmarshal(e.Value(), &u)
	}
	if err != nil {
		return u, 0, fmt.Errorf("count files of %s: %w", owner, err)
	}
	return u, revision, nil
}

func setUsage(ctx context.Context, kv jetstream.KeyValue, owner string, u usage, revision uint64) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	_, err = kv.Update(ctx, storedKey(owner), text, revision)
	return err
}

// countedOf counts the files of an owner.
func countedOf(ctx context.Context, kv jetstream.KeyValue, owner string) (n int64, err error) {
	there, err := entriesOf(ctx, kv, owner)
	for _, stored := range there {
		n += stored.Size + FileCost
	}
	return n, err
}

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
