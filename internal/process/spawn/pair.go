package spawn

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// Pair returns a connection for Serve, and the file by which another process has its other end, for OpenRemote.
func Pair() (ours *net.UnixConn, theirs *os.File, err error) {
	one, theirs, err := filePair()
	if err != nil {
		return nil, nil, err
	}
	if ours, err = connection(one); err != nil {
		_ = theirs.Close()
	}
	return ours, theirs, err
}

// filePair makes two connected sockets.
func filePair() (one, other *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "pair"), os.NewFile(uintptr(fds[1]), "pair"), nil
}

// connection makes a connection of a file, and closes the file.
func connection(f *os.File) (*net.UnixConn, error) {
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("%T is no unix socket", c)
	}
	return u, nil
}

// closeAll closes files.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
