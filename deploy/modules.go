package deploy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"weak"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
)

// ModuleRef names a module of WebAssembly that is a file of its owner.
type ModuleRef struct {
	Hash string `json:"hash"` // SHA-256, hex
	Size int64  `json:"size"` // bytes
}

// ModuleRefs names modules.
func ModuleRefs(modules []*workers.Module) (refs []ModuleRef) {
	for _, m := range modules {
		refs = append(refs, ModuleRef{m.Hash, int64(len(m.Code))})
	}
	return refs
}

func hashesOf(modules []*workers.Module) (hashes []string) {
	for _, m := range modules {
		hashes = append(hashes, m.Hash)
	}
	return hashes
}

func checkModuleRefs(refs []ModuleRef) error {
	return bundle.CheckModuleSizes(len(refs), func(i int) (string, int64) { return refs[i].Hash, refs[i].Size })
}

// headerModules is the header of a stored record that names its modules and their bytes: HASH=SIZE,HASH=SIZE. The
// fleet's user writes it, so that what an owner has is known from headers alone.
const headerModules = "Pinwheel-Modules"

func modulesHeader(modules []*workers.Module) string {
	texts := make([]string, len(modules))
	for i, m := range modules {
		texts[i] = fmt.Sprintf("%s=%d", m.Hash, len(m.Code))
	}
	return strings.Join(texts, ",")
}

// addModules adds what the header of a record names.
func addModules(to map[string]int64, header string) {
	for text := range strings.SplitSeq(header, ",") {
		hash, size, _ := strings.Cut(text, "=")
		if n, err := strconv.ParseInt(size, 10, 64); err == nil && n > 0 {
			to[hash] = n
		}
	}
}

// moduleBook has the modules that are in use in this process, each once: versions of a worker mostly have the same.
type moduleBook struct {
	mu   sync.Mutex
	held map[moduleKey]weak.Pointer[workers.Module]
}

// moduleKey names a module of an owner: owners share none, so that nobody learns what others have.
type moduleKey struct{ owner, hash string }

func (b *moduleBook) get(k moduleKey) *workers.Module {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held[k].Value()
}

// put notes a module, and forgets those that nobody uses.
func (b *moduleBook) put(k moduleKey, m *workers.Module) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = map[moduleKey]weak.Pointer[workers.Module]{}
	}
	for other, p := range b.held {
		if p.Value() == nil {
			delete(b.held, other)
		}
	}
	b.held[k] = weak.Make(m)
}

// ReadModules reads modules of WebAssembly that an owner has stored as files (AddFiles), for its next deploy. The error
// is an *InvalidError when their names or sizes are wrong, and a *MissingFilesError when some are not there.
func ReadModules(ctx context.Context, s *Store, owner string, refs []ModuleRef) ([]*workers.Module, error) {
	if err := checkModuleRefs(refs); err != nil {
		return nil, &InvalidError{err}
	}
	modules, err := modulesOf(ctx, s, owner, refs)
	if errors.Is(err, assetstore.ErrNotFound) {
		err = fmt.Errorf("%w (%w)", &MissingFilesError{Files: 1}, err)
	}
	return modules, err
}

// readModules reads the modules that a record names. What is missing or damaged is errDamaged: the version does not
// run.
func readModules(ctx context.Context, s *Store, owner string, refs []ModuleRef) ([]*workers.Module, error) {
	modules, err := modulesOf(ctx, s, owner, refs)
	if errors.Is(err, assetstore.ErrNotFound) {
		err = fmt.Errorf("a module is %w: %w", errDamaged, err)
	}
	return modules, err
}

func modulesOf(ctx context.Context, s *Store, owner string, refs []ModuleRef) (modules []*workers.Module, err error) {
	for _, ref := range refs {
		k := moduleKey{owner, ref.Hash}
		m := s.modules.get(k)
		if m == nil || int64(len(m.Code)) != ref.Size {
			m = &workers.Module{Hash: ref.Hash}
			if m.Code, err = s.files.Whole(ctx, owner, ref.Hash, ref.Size); err != nil {
				return nil, err
			}
			s.modules.put(k, m)
		}
		modules = append(modules, m)
	}
	return modules, nil
}
