package spawn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Spawner starts processes for this one. Any goroutine may use it.
type Spawner struct {
	// Require has Cell refuse a cell that is not confined in all parts. It is set before the first one is started.
	Require bool

	mu   sync.Mutex    // one request at a time
	conn *net.UnixConn // to the Starter of the supervisor; nil = local
	// Of a Spawner that starts processes itself.
	local   *Starter
	running sync.WaitGroup
}

// OpenRemote makes a Spawner of a file of Pair, which it closes. The Starter at the other end starts the processes.
func OpenRemote(f *os.File) (*Spawner, error) {
	conn, err := connection(f)
	if err != nil {
		return nil, fmt.Errorf("connection to start processes: %w", err)
	}
	return &Spawner{conn: conn}, nil
}

// Local makes a Spawner whose processes are children of this one.
func Local(s Starter) *Spawner { return &Spawner{local: &s} }

// Close ends what starts processes. The processes of a Starter elsewhere go on. It waits for those of this process,
// whose users have killed them.
func (s *Spawner) Close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	s.running.Wait()
}

// counts are how many descriptors the processes of a kind have for their users.
var counts = map[kind]int{check: 3, cell: 4}

// ask has a process of that kind started, and returns what its user needs.
func (s *Spawner) ask(k kind) ([]*os.File, error) {
	if s.local != nil {
		return s.local.start(k, &s.running, func() {})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.conn.Write([]byte{byte(k)}); err != nil {
		return nil, err
	}
	answer, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*mostDescriptors))
	_, n, _, _, err := s.conn.ReadMsgUnix(answer, rights)
	if err != nil {
		return nil, err
	}
	if answer[0] != started {
		return nil, fmt.Errorf("the supervisor has started no process: %s", s.whyNot())
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, fmt.Errorf("descriptors of the supervisor: %w", err)
	}
	if len(messages) != 1 {
		return nil, fmt.Errorf("descriptors of the supervisor: %d messages in place of one", len(messages))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("descriptors of the supervisor: %w", err)
	}
	var files []*os.File
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		_ = unix.SetNonblock(fd, true)
		files = append(files, os.NewFile(uintptr(fd), "spawn"))
	}
	if len(files) != counts[k] {
		closeAll(files)
		return nil, fmt.Errorf("descriptors of the supervisor: %d in place of %d", len(files), counts[k])
	}
	return files, nil
}

// whyNot reads why there is no process.
func (s *Spawner) whyNot() string {
	why := make([]byte, 1)
	_, err := io.ReadFull(s.conn, why)
	if err == nil {
		why = make([]byte, why[0])
		_, err = io.ReadFull(s.conn, why)
	}
	if err != nil {
		return err.Error()
	}
	return string(why)
}

// handle is what the user of a process has of it.
type handle struct {
	birth
	conn    *net.UnixConn
	says    *json.Decoder
	release func() // called once, when the process has ended
	once    sync.Once
	ending  Ending
}

func newHandle(f *os.File) (*handle, error) {
	conn, err := connection(f)
	if err != nil {
		return nil, err
	}
	return &handle{conn: conn, says: json.NewDecoder(conn)}, nil
}

// born waits until the process has begun.
func (h *handle) born() error {
	n := h.next()
	if n.Birth != nil {
		h.birth = *n.Birth
		return nil
	}
	h.once.Do(func() { h.end(n) })
	return fmt.Errorf("the process has not begun: %w", errors.Join(h.ending.Err(), errors.New(h.ending.Text)))
}

// next waits for the next news.
func (h *handle) next() (n news) {
	if err := h.says.Decode(&n); err != nil {
		n.Ending = &Ending{Why: "nobody says how the process ended: " + err.Error()}
	}
	return n
}

func (h *handle) end(n news) {
	h.ending = Ending{Why: "nobody says how the process ended"}
	if n.Ending != nil {
		h.ending = *n.Ending
	}
	_ = h.conn.Close()
	h.release()
}

// PID is the ID of the process, in the namespace of the process that has started it.
func (h *handle) PID() int { return h.birth.PID }

// Kill ends the process. Any goroutine may call it, at any time.
func (h *handle) Kill() { _ = h.conn.CloseWrite() }

// Wait returns how the process ended, when it has. Any goroutine may call it. It must be called, or descriptors stay.
func (h *handle) Wait() Ending {
	h.once.Do(func() { h.end(h.next()) })
	return h.ending
}
