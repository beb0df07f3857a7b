package assets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Folder is a directory with files to deploy.
type Folder struct {
	Name  string // as its author names it
	List  *List
	Hash  string            // of List
	Total int64             // bytes of all files
	Notes []string          // what was left out, and why
	paths map[string]string // by hash, a file that has it
	dir   string
}

// Error is a fault of a file.
type Error struct {
	File   string // path from the directory
	Line   int    // from 1; 0 = the whole file
	Column int
	Text   string
}

// Error is the fault with its place in the directory.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// Files with rules. They are not served.
const (
	headersFile   = "_headers"
	redirectsFile = "_redirects"
)

// leftOut are files and directories that are no files of a site.
func leftOut(name string) bool {
	return name == "node_modules" || strings.HasPrefix(name, ".") && name != ".well-known"
}

// Open reads the files below dir and hashes them. name is dir as its author names it. Files at the paths skip are none
// of a site. A link is followed if it does not lead out of dir. The error is an *Error when the author must correct
// something.
func Open(dir, name string, skip ...string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f := &Folder{Name: name, List: &List{Files: map[string]File{}}, paths: map[string]string{}, dir: dir}
	ignored, err := readIgnores(root)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return &Error{File: path, Text: "it cannot be read"}
		case !d.IsDir() && (path == headersFile || path == redirectsFile):
			return f.rules(root, path) // also where ignoreFile has their names
		case path == ignoreFile:
			return nil
		case path != "." && ignored.match(path, d.IsDir()):
			return skipped(d)
		case path != "." && leftOut(d.Name()):
			f.leave(path + " is not served: its name begins with a dot, or it is node_modules")
			return skipped(d)
		case d.IsDir(), slices.Contains(skip, path):
			return nil
		}
		return f.add(root, path)
	})
	if err != nil {
		return nil, err
	}
	if _, f.Hash, err = f.List.Encode(); err != nil {
		return nil, &Error{File: ".", Text: err.Error()}
	}
	return f, nil
}

// skipped leaves out a file, or a directory with all below it.
func skipped(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// maxNotes is the most Notes: a directory may have any number of files.
const maxNotes = 10

func (f *Folder) leave(note string) {
	if len(f.Notes) < maxNotes {
		f.Notes = append(f.Notes, note)
	}
}

func (f *Folder) add(root *os.Root, path string) error {
	if len(f.List.Files) >= MaxFiles {
		return &Error{File: ".", Text: fmt.Sprintf("it has more than %d files", MaxFiles)}
	}
	if why := wrongPath("/" + path); why != "" {
		return &Error{File: path, Text: "its path cannot be served: " + why}
	}
	file, size, err := open(root, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(file, MaxFile+1))
	if err != nil || n != size {
		return &Error{File: path, Text: "it cannot be read, or another program writes it"}
	}
	hash := hex.EncodeToString(h.Sum(nil))
	one := File{Hash: hash, Size: n, Type: typeOf(path)}
	if one.Type == types[".html"] {
		if _, err = file.Seek(0, io.SeekStart); err != nil {
			return &Error{File: path, Text: "it cannot be read"}
		}
		one.BaseAt = min(baseAt(file), n+1) // the file may be another one by now; Read notices
	}
	f.List.Files["/"+path] = one
	f.paths[hash] = path
	f.Total += n
	return nil
}

// open opens a regular file below root. The caller closes it.
func open(root *os.Root, path string) (*os.File, int64, error) {
	info, err := root.Stat(path) // first, because opening a device can have effects
	switch {
	case err != nil:
		return nil, 0, &Error{File: path, Text: "it cannot be read: it is a link that leads nowhere, or out of the directory"}
	case info.IsDir():
		return nil, 0, &Error{File: path, Text: "it is a link to a directory: only links to files are followed"}
	case !info.Mode().IsRegular():
		return nil, 0, &Error{File: path, Text: "it is no regular file"}
	case info.Size() > MaxFile:
		return nil, 0, &Error{File: path, Text: fmt.Sprintf("it has %d bytes: at most %d are served", info.Size(), MaxFile)}
	}
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, &Error{File: path, Text: "it cannot be opened"}
	}
	return file, info.Size(), nil
}

// rules reads a file with rules.
func (f *Folder) rules(root *os.Root, path string) error {
	file, size, err := open(root, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if size > maxRulesText {
		return &Error{File: path, Text: fmt.Sprintf("it has %d bytes: at most %d are read", size, maxRulesText)}
	}
	text, err := io.ReadAll(io.LimitReader(file, size))
	if err != nil {
		return &Error{File: path, Text: "it cannot be read"}
	}
	if path == headersFile {
		f.List.Headers, err = parseHeaders(text)
	} else {
		var notes []string
		f.List.Redirects, notes, err = parseRedirects(text)
		for _, note := range notes {
			f.leave(note)
		}
	}
	return err
}

// Inputs are the absolute paths of the directories that have files, each with AnyName behind it: a change there changes
// the folder.
func (f *Folder) Inputs() []string {
	seen, list := map[string]bool{}, []string{filepath.Join(f.dir, AnyName)}
	for path := range f.List.Files {
		abs := filepath.Join(f.dir, filepath.FromSlash(path))
		for dir := filepath.Dir(abs); dir != f.dir && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			list = append(list, filepath.Join(dir, AnyName))
		}
	}
	return list
}

// AnyName stands for any file of a directory in Inputs.
const AnyName = "*"

// errChanged is the error of a file that is not what was hashed.
var errChanged = errors.New("the file changed while it was deployed")

// Hashes are those of the files, each once, in the order of the paths.
func (f *Folder) Hashes() []string {
	seen, list := map[string]bool{}, []string(nil)
	for _, path := range slices.Sorted(maps.Keys(f.List.Files)) {
		if h := f.List.Files[path].Hash; !seen[h] {
			seen[h] = true
			list = append(list, h)
		}
	}
	return list
}

// Read returns the file with a hash and its Content-Type.
func (f *Folder) Read(hash string) (data []byte, contentType string, err error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = root.Close() }()
	path := f.paths[hash]
	file, size, err := open(root, path)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }()
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err = b.ReadFrom(io.LimitReader(file, MaxFile+1)); err == nil && HashOf(b.Bytes()) != hash {
		err = errChanged
	}
	if err != nil {
		return nil, "", &Error{File: path, Text: err.Error()}
	}
	return b.Bytes(), typeOf(path), nil
}
