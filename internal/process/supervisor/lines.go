package supervisor

import "bytes"

// maxLine is the maximum length of an output line in bytes. A longer line is split.
const maxLine = 256 << 10

// lines is a Writer that splits its input into lines and passes them on.
type lines struct {
	take func(line []byte)
	rest []byte // start of a line that is not complete
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

// flush passes on the incomplete last line.
func (l *lines) flush() {
	if line := bytes.TrimRight(l.rest, "\r"); len(line) > 0 {
		l.take(line)
	}
	l.rest = l.rest[:0]
}
