package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// uploadBundle stores a bundle in parts, and returns the request to deploy it. Without uploader the request has the
// bundle.
func uploadBundle(ctx context.Context, uploader *client.Client,
	req deploy.Request) (r control.DeployVersion, err error) {
	b := req.Bundle
	data := append([]byte(b.Code), b.SourceMap...)
	sum := sha256.Sum256(data)
	bundle := control.UploadedBundle{Code: len(b.Code), SourceMap: len(b.SourceMap), SHA256: hex.EncodeToString(sum[:])}
	if uploader == nil {
		bundle.Inline(data)
	} else {
		stored, err := uploader.Store(ctx, req.Owner, bytes.NewReader(data))
		if err != nil {
			return r, err
		}
		bundle.ID, bundle.Parts = stored.ID, stored.Parts
	}
	spec := b.Spec
	spec.Bindings = b.Bindings.With(req.Bindings)
	return control.DeployVersion{
		WorkerName: control.WorkerName{Worker: req.Owner + "/" + req.Name}, File: b.File, Spec: spec,
		Plain:  slices.Concat(b.Plain, req.Plain),
		Bundle: bundle, Modules: deploy.ModuleRefs(b.Modules),
		DryRun: req.DryRun, UploadOnly: req.UploadOnly, Percent: req.Percent, Steps: req.Steps, Guard: req.Guard,
		Tag: req.Tag, Note: control.Note(req.Note),
	}, nil
}

const (
	// filesBody is how many bytes of files go in one body, unless one file is larger.
	filesBody = 8 << 20
	// filesTries is how often an owner's files are stored. Another deploy of the owner may delete some before this one
	// names them.
	filesTries = 3
)

// fileUpload stores the files of a directory and the modules of WebAssembly for their owner: those that the fleet does
// not have.
type fileUpload struct {
	c       *control.Client
	upload  *client.Client
	owner   string
	folder  *assets.Folder    // nil = none
	list    []byte            // of the files, encoded
	modules map[string][]byte // by hash

	stored control.StoredFiles // so far

	// The files of the next body.
	body  bytes.Buffer
	names []control.UploadedFile
}

// deployWithFiles stores the files of a bundle, if it has some, and deploys it. A file that is there is not sent.
func deployWithFiles(ctx context.Context, c *control.Client, upload *client.Client,
	req deploy.Request) (d control.DeployedVersion, stored control.StoredFiles, err error) {
	r, err := uploadBundle(ctx, upload, req)
	if err != nil {
		return d, stored, err
	}
	folder, modules := req.Bundle.Files, map[string][]byte{}
	if req.DryRun { // the check reads the modules, and no files
		folder = nil
	}
	for _, m := range req.Bundle.Modules {
		modules[m.Hash] = m.Code
	}
	if folder == nil && len(modules) == 0 {
		d, err = control.Ask(ctx, c, control.VersionsDeploy, r)
		return d, stored, err
	}
	f := &fileUpload{c: c, upload: upload, owner: req.Owner, folder: folder, modules: modules}
	if folder != nil {
		if f.list, _, err = folder.List.Encode(); err != nil {
			return d, stored, err
		}
	}
	for try := 1; ; try++ {
		if err = f.store(ctx); err != nil {
			return d, f.stored, err
		}
		d, err = control.Ask(ctx, c, control.VersionsDeploy, r)
		var refused *control.Error
		if !errors.As(err, &refused) || refused.Code != http.StatusPreconditionFailed || try == filesTries {
			return d, f.stored, err
		}
		if r, err = uploadBundle(ctx, upload, req); err != nil { // the fleet has removed the one before
			return d, f.stored, err
		}
	}
}

// store stores what is missing: the files and modules, and then the list of files.
func (f *fileUpload) store(ctx context.Context) error {
	sizes := map[string]int64{} // equal files are stored once
	hashes := slices.Sorted(maps.Keys(f.modules))
	for hash, code := range f.modules {
		sizes[hash] = int64(len(code))
	}
	if f.folder != nil {
		hashes = append(append(hashes, f.folder.Hashes()...), f.folder.Hash)
		sizes[f.folder.Hash] = int64(len(f.list))
		for _, file := range f.folder.List.Files {
			sizes[file.Hash] = file.Size
		}
	}
	size := int64(0)
	for _, n := range sizes {
		size += n
	}
	listIsMissing := false
	for group := range slices.Chunk(hashes, control.MaxFileHashes) {
		answer, err := control.Ask(ctx, f.c, control.FilesMissing, control.MissingFiles{
			OwnerFiles: control.OwnerFiles{Owner: f.owner}, Hashes: group, Files: len(hashes), Bytes: size,
		})
		if err != nil {
			return err
		}
		for _, hash := range answer.Missing {
			if f.isList(hash) {
				listIsMissing = true
			} else if err := f.add(ctx, hash); err != nil {
				return err
			}
		}
	}
	if err := f.flush(ctx); err != nil || !listIsMissing {
		return err
	}
	stored := f.stored
	err := f.add(ctx, f.folder.Hash)
	if err == nil {
		err = f.flush(ctx)
	}
	f.stored = stored // the author does not know of the list
	return err
}

// isList reports whether the hash is that of the list of files.
func (f *fileUpload) isList(hash string) bool { return f.folder != nil && hash == f.folder.Hash }

// add adds a file to the next body, and sends that when it is full.
func (f *fileUpload) add(ctx context.Context, hash string) (err error) {
	data, contentType := f.list, ""
	if code := f.modules[hash]; code != nil {
		data = code
	} else if !f.isList(hash) {
		if data, contentType, err = f.folder.Read(hash); err != nil {
			return err
		}
	}
	if f.body.Len() > 0 && f.body.Len()+len(data) > filesBody || len(f.names) == control.MaxFileHashes {
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	f.body.Write(data)
	f.names = append(f.names, control.UploadedFile{SHA256: hash, Size: len(data), Type: contentType})
	return nil
}

// flush sends the next body.
func (f *fileUpload) flush(ctx context.Context) error {
	if len(f.names) == 0 {
		return nil
	}
	r := control.StoreFiles{OwnerFiles: control.OwnerFiles{Owner: f.owner}, ID: "none", Files: f.names}
	if f.upload == nil {
		r.Inline(f.body.Bytes())
	} else if f.body.Len() > 0 {
		b, err := f.upload.Store(ctx, f.owner, io.Reader(&f.body))
		if err != nil {
			return err
		}
		r.ID, r.Parts = b.ID, b.Parts
	}
	done, err := control.Ask(ctx, f.c, control.FilesStore, r)
	f.stored.Files += done.Files
	f.stored.Bytes += done.Bytes
	f.body.Reset()
	f.names = nil
	return err
}
