package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen is where something is shown as it changes: a terminal, whose content comes back in the end, or a file.
type Screen struct {
	out      io.Writer
	terminal *os.File    // nil: none
	in       *os.File    // nil: no keys
	restore  *term.State // of in
}

// OpenScreen opens a Screen, which is to be closed. asJSON says that nothing is drawn.
func (t *Terminal) OpenScreen(asJSON bool) *Screen {
	s := &Screen{out: t.Out}
	if out, ok := t.Raw.Out.(*os.File); ok && !asJSON && term.IsTerminal(int(out.Fd())) {
		s.terminal = out
		fmt.Fprint(out, "\x1b[?1049h\x1b[?25l") // the alternate screen, without a cursor
	}
	if in, ok := t.In.(*os.File); ok && s.terminal != nil && term.IsTerminal(int(in.Fd())) {
		if state, err := term.MakeRaw(int(in.Fd())); err == nil {
			s.in, s.restore = in, state
		}
	}
	return s
}

// Close brings back what was there before.
func (s *Screen) Close() {
	if s.restore != nil {
		_ = term.Restore(int(s.in.Fd()), s.restore)
	}
	if s.terminal != nil {
		fmt.Fprint(s.terminal, "\x1b[?25h\x1b[?1049l")
	}
}

// Keys calls end when q, Esc or Ctrl-C is pressed.
func (s *Screen) Keys(end func()) {
	if s.in == nil {
		return
	}
	go func() {
		key := make([]byte, 1)
		for {
			if _, err := s.in.Read(key); err != nil || key[0] == 'q' || key[0] == 3 || key[0] == 27 {
				end()
				return
			}
		}
	}()
}

// Show shows what draw makes: as many and as long lines as there is room. 0 = any.
func (s *Screen) Show(draw func(width, height int) string) error {
	if s.terminal == nil {
		_, err := fmt.Fprintln(s.out, draw(0, 0))
		return err
	}
	width, height, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	text := draw(width, height)
	if Colors(s.terminal) {
		text = paintTables(text)
	}
	_, err = fmt.Fprint(s.terminal, "\x1b[H"+onScreen(text)+"\x1b[J")
	return err
}

// onScreen makes lines that clear what was behind them. The terminal is in raw mode, which adds no carriage return.
func onScreen(text string) string {
	return strings.ReplaceAll(text, "\n", "\x1b[K\r\n") + "\x1b[K"
}
