package assetstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// readTimeout bounds one read from NATS, which several requests may wait for.
const readTimeout = 10 * time.Second

// List returns a list of files. Callers must not change it.
func (s *Store) List(ctx context.Context, owner, hash string) (*assets.List, error) {
	return cached(ctx, s.cache, cacheKey{kind: cachedList, owner: owner, hash: hash},
		func(ctx context.Context) (*assets.List, int64, error) {
			stored, err := s.read(ctx, owner, hash)
			if err != nil {
				return nil, 0, err
			}
			if stored.Size > assets.MaxListText {
				return nil, 0, fmt.Errorf("list of files %s of %s has %d bytes", hash, owner, stored.Size)
			}
			text, err := s.plain(ctx, owner, hash, stored.Size)
			if err != nil {
				return nil, 0, err
			}
			var l *assets.List
			turn := s.turns.Do(ctx, owner, func() {
				if assets.HashOf(text) != hash {
					err = fmt.Errorf("list of files %s of %s is damaged", hash, owner)
					return
				}
				l, err = assets.Decode(text)
			})
			if turn != nil {
				return nil, 0, turn
			}
			if err != nil {
				return nil, 0, err
			}
			return l, 2*int64(len(text)) + ruleBytes*int64(len(l.Redirects)+len(l.Headers)), nil
		})
}

// ruleBytes is what a rule takes in the cache beside its text, about.
const ruleBytes = 512

// Turn does work for an owner when it is its turn. f computes and waits for nothing. The error is that of ctx, when it
// ends before f begins.
func (s *Store) Turn(ctx context.Context, owner string, f func()) error {
	if guard.FileRules.Off() {
		f()
		return nil
	}
	return s.turns.Do(ctx, owner, f)
}

// Stored says how a file is stored.
func (s *Store) Stored(ctx context.Context, owner, hash string) (assets.Stored, error) {
	return cached(ctx, s.cache, cacheKey{kind: cachedFile, owner: owner, hash: hash},
		func(ctx context.Context) (assets.Stored, int64, error) {
			stored, err := s.read(ctx, owner, hash)
			return stored, 256, err
		})
}

func (s *Store) read(ctx context.Context, owner, hash string) (stored assets.Stored, err error) {
	text, err := s.get(ctx, fileKey(owner, hash))
	if err != nil {
		return stored, err
	}
	if err = json.Unmarshal(text, &stored); err != nil || stored.Size < 0 {
		return stored, fmt.Errorf("file %s of %s is damaged", hash, owner)
	}
	return stored, nil
}

// Whole returns a file of that size, past the cache. The error is an ErrNotFound when it is not there, or has another
// size or other bytes.
func (s *Store) Whole(ctx context.Context, owner, hash string, size int64) ([]byte, error) {
	stored, err := s.read(ctx, owner, hash)
	if err != nil {
		return nil, err
	}
	wrong := func(why string) error { return fmt.Errorf("%w: file %s of %s %s", ErrNotFound, hash, owner, why) }
	if stored.Size != size {
		return nil, wrong(fmt.Sprintf("has %d bytes, and not %d", stored.Size, size))
	}
	data, err := s.plain(ctx, owner, hash, size)
	if err != nil {
		return nil, err
	}
	if assets.HashOf(data) != hash {
		return nil, wrong("is damaged")
	}
	return data, nil
}

// plain joins the parts of a file of that size as it was stored, past the cache. It stops at parts that do not fit:
// callers check the hash.
func (s *Store) plain(ctx context.Context, owner, hash string, size int64) ([]byte, error) {
	data := make([]byte, 0, size)
	for n := 0; int64(len(data)) < size; n++ {
		part, err := s.get(ctx, partKey(owner, hash, assets.Plain, n))
		if err != nil {
			return nil, err
		}
		if len(part) == 0 || int64(len(data)+len(part)) > size {
			break
		}
		data = append(data, part...)
	}
	return data, nil
}

// Part returns part n of a file, from 0. Callers must not change it.
func (s *Store) Part(ctx context.Context, owner, hash string, e assets.Encoding, n int) ([]byte, error) {
	key := cacheKey{kind: cachedPart, owner: owner, hash: hash, encoding: e, part: n}
	return cached(ctx, s.cache, key, func(ctx context.Context) ([]byte, int64, error) {
		data, err := s.get(ctx, partKey(owner, hash, e, n))
		return data, int64(len(data)) + 256, err
	})
}
