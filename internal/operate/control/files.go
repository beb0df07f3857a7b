package control

import (
	"context"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
)

// Bounds of a request about files.
const (
	// MaxFileHashes is the most files that a request names.
	MaxFileHashes = 1000
	// MaxFilesBody is the most bytes of files that come in one body: one file of the largest size has room.
	MaxFilesBody = 25 << 20
)

// OwnerFiles names the owner of files.
type OwnerFiles struct {
	Owner string `json:"owner"`
	asker
}

// MissingFiles asks which files an owner has not stored.
type MissingFiles struct {
	OwnerFiles
	Hashes []string `json:"hashes"` // SHA-256, hex; at most MaxFileHashes
	// Files and Bytes are those of the whole version, so that one without room is refused at once. 0 = not said.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// MissingHashes are the files that are not stored.
type MissingHashes struct {
	Missing []string `json:"missing"` // SHA-256, hex
}

// UploadedFile is a file in a body.
type UploadedFile struct {
	SHA256 string `json:"sha256"` // hex
	Size   int    `json:"size"`   // bytes
	Type   string `json:"type"`   // Content-Type: text is stored compressed too
}

// StoreFiles stores files that came in parts, as a body of their owner: one file behind the other.
type StoreFiles struct {
	OwnerFiles
	ID    string         `json:"id"` // of the body
	Parts int            `json:"parts"`
	Files []UploadedFile `json:"files"` // at most MaxFileHashes

	data []byte // of a request that this program handles
}

// Inline makes r a request that this program handles, with the bytes of the files.
func (r *StoreFiles) Inline(data []byte) { r.ID, r.Parts, r.data = inlineID, 1, data }

// StoredFiles is what was stored.
type StoredFiles struct {
	Files int   `json:"files"` // the others were there
	Bytes int64 `json:"bytes"`
}

// fileStore stores the files that workers of owners serve.
type fileStore struct {
	workers  *deploy.Store
	policies *deploy.Policies
	bodies   *bodies
	uploads  *uploads
}

// missing says which files an owner has not stored.
func (s *fileStore) missing(ctx context.Context, r MissingFiles) (MissingHashes, error) {
	answer := MissingHashes{Missing: []string{}}
	switch err := events.CheckName("owner", r.Owner); {
	case err != nil:
		return answer, wrongName("owner", err)
	case len(r.Hashes) > MaxFileHashes:
		return answer, wrongField("hashes", " has %d entries: at most %d are allowed", len(r.Hashes), MaxFileHashes)
	case r.Files < 0 || r.Files > assets.MaxFiles+1+bundle.MaxModules:
		return answer, wrongField("files", " is %d: a version has at most %d files, their list, and %d modules", r.Files,
			assets.MaxFiles, bundle.MaxModules)
	case r.Bytes < 0 || r.Bytes > assets.MaxFiles*assets.MaxFile:
		return answer, wrongField("bytes", " is %d: a file has at most %d", r.Bytes, assets.MaxFile)
	}
	for _, hash := range r.Hashes {
		if !assets.IsHash(hash) {
			return answer, wrongField("hashes", " %.80q: each is 64 hex digits", hash)
		}
	}
	if r.by != "" {
		policy, err := s.policies.Get(ctx, r.Owner)
		if err != nil {
			return answer, err
		}
		if err := deploy.MayHaveFiles(r.Owner, policy, r.Files, r.Bytes); err != nil {
			return answer, err
		}
	}
	missing, err := deploy.MissingFiles(ctx, s.workers, r.Owner, r.Hashes)
	answer.Missing = append(answer.Missing, missing...)
	return answer, err
}

// check checks what the store does not check, and returns how many bytes the body has.
func (r StoreFiles) check() (size int, err error) {
	if err := events.CheckName("owner", r.Owner); err != nil {
		return 0, wrongName("owner", err)
	}
	switch {
	case events.CheckName("id of a body", r.ID) != nil:
		return 0, wrongField("id", " %.80q: it is the id of a body that was stored in parts", r.ID)
	case r.Parts < 0 || r.Parts > maxBundleParts:
		return 0, wrongField("parts", " is %d: it is 0 to %d", r.Parts, maxBundleParts)
	case len(r.Files) < 1 || len(r.Files) > MaxFileHashes:
		return 0, wrongField("files", " has %d entries: it has 1 to %d", len(r.Files), MaxFileHashes)
	}
	for _, f := range r.Files {
		switch {
		case !assets.IsHash(f.SHA256):
			return 0, wrongField("files", ": sha256 %.80q: it is 64 hex digits", f.SHA256)
		case f.Size < 0 || f.Size > assets.MaxFile:
			return 0, wrongField("files", ": size is %d: a file has at most %d bytes", f.Size, assets.MaxFile)
		}
		if size += f.Size; size > MaxFilesBody {
			return 0, wrongField("files", " have more than %d bytes in all: store them in several requests", MaxFilesBody)
		}
	}
	return size, nil
}

// store stores files of an owner. It compares each with its hash.
func (s *fileStore) store(ctx context.Context, r StoreFiles) (answer StoredFiles, err error) {
	size, err := r.check()
	if err != nil {
		return answer, err
	}
	err = s.bodies.under(ctx, s.uploads, r.Owner,
		parts{"body", "the sizes of files say", r.ID, r.Parts, size, r.data}, func(data []byte) (bool, error) {
			answer, err = s.add(ctx, r, data)
			return false, err
		})
	return answer, err
}

func (s *fileStore) add(ctx context.Context, r StoreFiles, data []byte) (StoredFiles, error) {
	policy, err := s.policies.Get(ctx, r.Owner)
	if err != nil {
		return StoredFiles{}, err
	}
	files := make([]deploy.NewFile, len(r.Files))
	for i, f := range r.Files {
		files[i] = deploy.NewFile{Hash: f.SHA256, Data: data[:f.Size:f.Size], Compress: assets.Compressible(f.Type)}
		data = data[f.Size:]
	}
	up, err := deploy.AddFiles(ctx, s.workers, r.Owner, files, policy, r.by != "")
	return StoredFiles{up.Files, up.Bytes}, err
}
