package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

const (
	// filesBody is how many bytes of files go in one body, unless one file is larger.
	filesBody = 8 << 20
	// filesTries is how often an owner's files are stored. Another deploy of the owner may delete some before this one
	// names them.
	filesTries = 3
)

// doorFiles stores the files of a directory for its owner: those that the fleet does not have.
type doorFiles struct {
	c      *control.Client
	upload *client.Client
	owner  string
	folder *assets.Folder
	list   []byte // of the files, encoded

	stored control.StoredFiles // so far

	// The files of the next body.
	body  bytes.Buffer
	names []control.UploadedFile
}

// deployWithFiles stores the files of a bundle, if it has some, and deploys it. A file that is there is not sent.
func deployWithFiles(ctx context.Context, c *control.Client, upload *client.Client, req deploy.Request, r control.DeployVersion) (d control.DeployedVersion, stored control.StoredFiles, err error) {
	folder := req.Bundle.Files
	if folder == nil || req.DryRun {
		d, err = control.Deploy(ctx, c, r)
		return d, stored, err
	}
	f := &doorFiles{c: c, upload: upload, owner: req.Owner, folder: folder}
	if f.list, _, err = folder.List.Encode(); err != nil {
		return d, stored, err
	}
	for try := 1; ; try++ {
		if err = f.store(ctx); err != nil {
			return d, f.stored, err
		}
		d, err = control.Deploy(ctx, c, r)
		var refused *control.Error
		if !errors.As(err, &refused) || refused.Code != http.StatusPreconditionFailed || try == filesTries {
			return d, f.stored, err
		}
		if r, err = uploadBundle(ctx, upload, req); err != nil { // the fleet has removed the one before
			return d, f.stored, err
		}
	}
}

// store stores what is missing: the files, and then their list.
func (f *doorFiles) store(ctx context.Context) error {
	hashes, size := append(f.folder.Hashes(), f.folder.Hash), int64(len(f.list))
	sizes := map[string]int64{} // equal files are stored once
	for _, file := range f.folder.List.Files {
		sizes[file.Hash] = file.Size
	}
	for _, n := range sizes {
		size += n
	}
	for group := range slices.Chunk(hashes, control.MaxFileHashes) {
		answer, err := f.c.MissingFiles(ctx, control.MissingFiles{
			OwnerFiles: control.OwnerFiles{Owner: f.owner}, Hashes: group, Files: len(hashes), Bytes: size,
		})
		if err != nil {
			return err
		}
		for _, hash := range answer.Missing {
			if err := f.add(ctx, hash); err != nil {
				return err
			}
		}
	}
	return f.flush(ctx)
}

// add adds a file to the next body, and sends that when it is full.
func (f *doorFiles) add(ctx context.Context, hash string) (err error) {
	data, contentType := f.list, ""
	if hash != f.folder.Hash {
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
func (f *doorFiles) flush(ctx context.Context) error {
	if len(f.names) == 0 {
		return nil
	}
	r := control.StoreFiles{OwnerFiles: control.OwnerFiles{Owner: f.owner}, ID: "none", Files: f.names}
	if f.body.Len() > 0 {
		b, err := f.upload.Store(ctx, f.owner, io.Reader(&f.body))
		if err != nil {
			return err
		}
		r.ID, r.Parts = b.ID, b.Parts
	}
	done, err := f.c.StoreFiles(ctx, r)
	f.stored.Files += done.Files
	f.stored.Bytes += done.Bytes
	f.body.Reset()
	f.names = nil
	return err
}
