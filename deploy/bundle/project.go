package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Bounds of what a deploy reads, in bytes.
const (
	maxSource  = 32 << 20  // of one file
	maxSources = 256 << 20 // of all files of a bundle
	maxConfig  = 4 << 20   // of a manifest, package.json or tsconfig.json
)

// project is where the files of a bundle may be. The author of a source chooses what it imports, and the machine that
// deploys it may have files that the author must not see. So nothing else is read, and messages do not quote it.
type project struct {
	open   bool     // every file may be read: a test shows what happens then
	dir    string   // of the source, real
	trees  []string // real directories; the first is that of the project
	rooted bool     // the caller names the trees: the author must not see more of this machine
	own    int      // the author can write to the first own trees; the others are node_modules above the project
	named  string   // the first own trees, for messages
	left   atomic.Int64
}

// openProject finds the project of the source at abs. roots are the directories that may be read, if the caller names
// any.
func openProject(abs string, roots []string) (*project, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return nil, err
	}
	p := &project{open: guard.DeployFiles.Off(), dir: dir, named: strings.Join(roots, ", ")}
	p.left.Store(maxSources)
	for _, r := range roots {
		tree, err := realDir(r)
		if err != nil {
			return nil, fmt.Errorf("root %s: %w", r, err)
		}
		p.trees = append(p.trees, tree)
	}
	if len(roots) > 0 {
		p.own, p.rooted = len(roots), true
		return p, nil
	}
	root := projectRoot(dir)
	p.trees, p.own = append([]string{root}, modulesAbove(root)...), 1
	if p.named, err = filepath.Rel(dir, root); err != nil {
		return nil, err
	}
	return p, nil
}

// realPath is the absolute path without links.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func realDir(path string) (string, error) {
	real, err := realPath(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	return real, err
}

// projectRoot is the nearest directory from dir upwards that has a package.json, or the root of the workspaces around
// it. Without one, it is dir. It is never /.
func projectRoot(dir string) string {
	root := ""
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		switch {
		case root == "" && isFile(filepath.Join(d, "package.json")):
			root = d
		case root != "" && hasWorkspaces(d):
			return d
		}
	}
	if root == "" {
		return dir
	}
	return root
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// hasWorkspaces reports whether packages below dir may link to each other.
func hasWorkspaces(dir string) bool {
	if isFile(filepath.Join(dir, "pnpm-workspace.yaml")) {
		return true
	}
	p := &project{trees: []string{dir}}
	p.left.Store(maxConfig)
	text, err := p.read(filepath.Join(dir, "package.json"), maxConfig)
	return err == nil && slices.Contains(keysOf(text), "workspaces")
}

// modulesAbove are the directories node_modules above root, which an import of a package searches.
func modulesAbove(root string) (dirs []string) {
	for d := filepath.Dir(root); ; d = filepath.Dir(d) {
		if real, err := realDir(filepath.Join(d, "node_modules")); err == nil && real != "/" {
			dirs = append(dirs, real)
		}
		if d == filepath.Dir(d) {
			return dirs
		}
	}
}

// refusalOfFile is why a file is not read. It does not show the content of the file, nor where a link leads.
type refusalOfFile struct{ why string }

func (e *refusalOfFile) Error() string { return e.why }

// treeOf is the tree that contains a real path; "" = the path may not be read.
func (p *project) treeOf(real string) string {
	if slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(d string) bool { return within(d, real) }) {
		return ""
	}
	for _, tree := range p.trees {
		if within(tree, real) {
			return tree
		}
	}
	return ""
}

// within reports whether path is dir or below it. Both are clean and absolute.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// outside says that a file is not in the project, and where the project is.
func (p *project) outside() *refusalOfFile {
	return &refusalOfFile{fmt.Sprintf("it is outside of the project, which is the directory %s of the source: "+
		"--root DIR names another directory", p.named)}
}

// check refuses what read would refuse, but does not look at the size. It accepts a file that does not exist.
func (p *project) check(path string) error {
	if p.open {
		return nil
	}
	real, err := realPath(path)
	if err != nil {
		return nil
	}
	if p.treeOf(real) == "" {
		return p.outside()
	}
	if info, err := os.Lstat(real); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return notRegular(info)
	}
	return nil
}

func notRegular(info fs.FileInfo) error {
	return &refusalOfFile{why: fmt.Sprintf("it is a %s: only regular files are read", kindOf(info.Mode()))}
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device or something else that is special"
}

// read reads a regular file with at most that many bytes. It opens the file below a directory of the project without
// following a link out of it, and checks the opened file. So it has no effect when a program replaces the file or a
// directory at the same time. The error is a *refusalOfFile, or one of package os.
func (p *project) read(path string, most int64) ([]byte, error) {
	if p.open {
		return os.ReadFile(path)
	}
	real, err := realPath(path)
	if err != nil {
		return nil, err
	}
	tree := p.treeOf(real)
	if tree == "" {
		return nil, p.outside()
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	rel, err := filepath.Rel(tree, real)
	if err != nil {
		return nil, err
	}
	// This comes before the file is opened, because opening a device can have effects.
	if info, err := root.Stat(rel); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(info)
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened: %w", errors.Unwrap(err))
	}
	defer func() { _ = f.Close() }()
	return p.readOpen(f, most)
}

func (p *project) readOpen(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	switch {
	case !info.Mode().IsRegular():
		return nil, notRegular(info)
	case size > most:
		return nil, &refusalOfFile{why: fmt.Sprintf("it has %d bytes: at most %d are read", size, most)}
	case size > p.left.Load():
		return nil, &refusalOfFile{why: fmt.Sprintf("the files of the bundle have more than %d bytes in all", maxSources)}
	}
	text, err := io.ReadAll(io.LimitReader(f, size+1))
	if err == nil && int64(len(text)) > size { // for example a file of /proc, which may be mounted anywhere
		return nil, &refusalOfFile{why: "it has more bytes than the file system says: it is a special file, or another program writes it"}
	}
	p.left.Add(-int64(len(text)))
	return text, err
}
