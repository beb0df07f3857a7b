package spawn

import (
	"os"

	"github.com/pinwheel-run/pinwheel/internal/process/confine"
)

// beginCheck starts the process of a check. Its user gets the files to write to and to read from.
func (p *process) beginCheck(s *Starter) (err error) {
	var stdin, in, out, stdout *os.File
	if stdin, in, err = os.Pipe(); err != nil {
		return err
	}
	defer func() { _ = stdin.Close() }()
	p.given = append(p.given, in)
	if out, stdout, err = os.Pipe(); err != nil {
		return err
	}
	defer func() { _ = stdout.Close() }()
	p.given = append(p.given, out)
	value := "yes"
	if s.Enter != nil {
		value = Confined
	}
	p.cmd = command(s.Executable, CheckVariable, value)
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	return confine.Start(p.cmd, s.Enter, p.over)
}

// Check is a process that checks a module, as its user has it. It has read nothing yet.
type Check struct {
	In, Out *os.File // its input, and what it writes. Its user closes In; Wait closes Out
	*handle
}

// Check starts the process of a check. An error says that there is none. Any goroutine may call it.
func (s *Spawner) Check() (*Check, error) {
	files, err := s.ask(check)
	if err != nil {
		return nil, err
	}
	h, err := newHandle(files[2])
	if err != nil {
		closeAll(files[:2])
		return nil, err
	}
	h.release = func() { _ = files[1].Close() }
	if err := h.born(); err != nil {
		h.Kill()
		_ = files[0].Close()
		h.Wait()
		return nil, err
	}
	return &Check{In: files[0], Out: files[1], handle: h}, nil
}
