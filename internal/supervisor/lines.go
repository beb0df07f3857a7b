package supervisor

import "bytes"

// maxLine is how long a line of output may be, in bytes; a longer one comes in pieces.
const maxLine = 256 << 10

// lines is a Writer that passes on what it gets by lines.
type lines struct {
	take func(line []byte)
	rest []byte // of a line whose end has not come
}

// Write passes on the lines that end in p.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			l.rest = append(l.rest, rest...)
			if len(l.rest) >= maxLine {
				l.flush()
			}
			break
		}
		l.rest = append(l.rest, rest[:i]...)
		rest = rest[i+1:]
		l.flush()
	}
	return len(p), nil
}

// flush passes on what has come of the last line.
func (l *lines) flush() {
	if line := bytes.TrimRight(l.rest, "\r"); len(line) > 0 {
		l.take(line)
	}
	l.rest = l.rest[:0]
}
