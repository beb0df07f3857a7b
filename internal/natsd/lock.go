package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is the file in StoreDir that a running server has locked. nats-server itself locks nothing: two servers on one directory overwrite
// each other's data.
const lockName = "pinwheel.lock"

// Holder is the process that has a directory.
type Holder struct {
	PID   int       `json:"pid"`
	NATS  string    `json:"nats"` // URL of its server; "" while it starts
	Since time.Time `json:"since"`
}

// InUseError says that another running server has the directory.
type InUseError struct {
	Dir    string
	Holder Holder // the zero Holder where the lock file says nothing
}

func (e *InUseError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("natsd: another process has the data in %s", e.Dir)
	}
	return fmt.Sprintf("natsd: process %d has had the data in %s since %s", e.Holder.PID, e.Dir, e.Holder.Since.Format(time.DateTime))
}

// lock is a locked directory.
type lock struct{ file *os.File }

// lockDir locks a directory, which it makes where there is none, until close or the end of the process. The error is an *InUseError where
// another server has it.
func lockDir(dir string) (*lock, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("natsd: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("natsd: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) //nolint:gosec // a descriptor fits an int
	if errors.Is(err, unix.EWOULDBLOCK) {
		inUse := &InUseError{Dir: filepath.Clean(dir)}
		if text, err := io.ReadAll(f); err == nil {
			_ = json.Unmarshal(text, &inUse.Holder) // it may be just being written
		}
		return nil, errors.Join(inUse, f.Close())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("natsd: lock %s: %w", f.Name(), err)
	}
	l := &lock{f}
	return l, l.note("")
}

// note writes down who has the directory, for whoever else wants it.
func (l *lock) note(url string) error {
	text, err := json.Marshal(Holder{PID: os.Getpid(), NATS: url, Since: time.Now().Round(time.Second)})
	if err == nil {
		err = l.file.Truncate(0)
	}
	if err == nil {
		_, err = l.file.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("natsd: %w", err)
	}
	return nil
}

// close gives the directory back. The file stays: who removed it could remove the next holder's.
func (l *lock) close() { _ = l.file.Close() }
