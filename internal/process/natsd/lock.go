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

// lockName is the file in StoreDir that a running server locks. nats-server itself locks nothing: two servers on one
// directory overwrite each other's data.
const lockName = "pinwheel.lock"

// Holder is the process that uses a directory.
type Holder struct {
	PID   int       `json:"pid"`
	NATS  string    `json:"nats"` // URL of its server; "" while it starts
	Since time.Time `json:"since"`
}

// InUseError says that another running server uses the directory.
type InUseError struct {
	Dir    string
	Holder Holder // the zero Holder if the lock file has no content
}

func (e *InUseError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("natsd: another process has the data in %s", e.Dir)
	}
	return fmt.Sprintf("natsd: process %d has had the data in %s since %s", e.Holder.PID, e.Dir, e.Holder.Since.Format(time.DateTime))
}

// lock is a locked directory.
type lock struct{ file *os.File }

// lockDir locks a directory until close or the end of the process. It creates the directory if it is missing. The error
// is an *InUseError if another server uses the directory.
func lockDir(dir string) (*lock, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("natsd: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("natsd: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		inUse := &InUseError{Dir: filepath.Clean(dir)}
		if text, err := io.ReadAll(f); err == nil {
			_ = json.Unmarshal(text, &inUse.Holder) // the holder may be writing it now
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

// note writes into the lock file which process uses the directory, for other processes that want it.
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

// close unlocks the directory. The file stays: removing it could remove the file of the next holder.
func (l *lock) close() { _ = l.file.Close() }
