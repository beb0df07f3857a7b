package assetserver

import (
	"context"
	"errors"
	"io"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
)

// fileBody is an io.ReadSeeker of a stored file. It has one part at a time.
type fileBody struct {
	ctx         context.Context //nolint:containedctx // of the request
	files       Files
	owner, hash string
	encoding    assets.Encoding
	size, at    int64
	part        []byte
	loaded      int64 // number of part, from 1; 0 = none
}

var errShort = errors.New("a part of the file is shorter than it was stored")

// load loads the part with that offset.
func (b *fileBody) load(offset int64) error {
	n := offset / assets.PartBytes
	if offset >= b.size || b.loaded == n+1 {
		return nil
	}
	part, err := b.files.Part(b.ctx, b.owner, b.hash, b.encoding, int(n))
	if err != nil {
		return err
	}
	if int64(len(part)) != min(assets.PartBytes, b.size-n*assets.PartBytes) {
		return errShort
	}
	b.part, b.loaded = part, n+1
	return nil
}

func (b *fileBody) Read(p []byte) (int, error) {
	if b.at >= b.size {
		return 0, io.EOF
	}
	if err := b.load(b.at); err != nil {
		return 0, err
	}
	n := copy(p, b.part[b.at%assets.PartBytes:])
	b.at += int64(n)
	return n, nil
}

var errSeek = errors.New("a file has no such place")

func (b *fileBody) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.size
	}
	if offset < 0 {
		return 0, errSeek
	}
	b.at = offset
	return offset, nil
}

// pageBody is an io.ReadSeeker of a stored file with a text in it.
type pageBody struct {
	*fileBody
	text   string // "" = the file alone
	place  int64  // of text in the file
	offset int64
}

func (b *pageBody) Read(p []byte) (n int, err error) {
	length := int64(len(b.text))
	switch {
	case length == 0 || b.offset >= b.place+length:
		_, _ = b.fileBody.Seek(b.offset-length, io.SeekStart)
		n, err = b.fileBody.Read(p)
	case b.offset >= b.place:
		n = copy(p, b.text[b.offset-b.place:])
	default:
		_, _ = b.fileBody.Seek(b.offset, io.SeekStart)
		n, err = b.fileBody.Read(p[:min(int64(len(p)), b.place-b.offset)])
	}
	b.offset += int64(n)
	return n, err
}

func (b *pageBody) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.offset
	case io.SeekEnd:
		offset += b.size + int64(len(b.text))
	}
	if offset < 0 {
		return 0, errSeek
	}
	b.offset = offset
	return offset, nil
}
