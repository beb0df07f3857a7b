package rewriter

import "bytes"

// doctype returns the parts of a doctype: its name, public and system identifier.
func doctype(raw []byte) (parts [3]span) {
	for i := range parts {
		parts[i].from = -1
	}
	d := &doctypeReader{raw: bytes.TrimSuffix(raw, []byte(">")), at: len("<!doctype")}
	d.skip()
	if parts[0] = d.word(); parts[0].from < 0 {
		return parts
	}
	d.skip()
	switch key := d.word(); {
	case key.from < 0:
	case key.to-key.from >= 6 && bytes.EqualFold(d.raw[key.from:key.from+6], []byte("public")):
		d.at = int(key.from) + 6
		parts[1] = d.quoted()
		parts[2] = d.quoted()
	case key.to-key.from >= 6 && bytes.EqualFold(d.raw[key.from:key.from+6], []byte("system")):
		d.at = int(key.from) + 6
		parts[2] = d.quoted()
	}
	return parts
}

type doctypeReader struct {
	raw []byte
	at  int
}

func (d *doctypeReader) skip() {
	for d.at < len(d.raw) && isSpace(d.raw[d.at]) {
		d.at++
	}
}

// word reads what has no white space.
func (d *doctypeReader) word() span {
	from := d.at
	for d.at < len(d.raw) && !isSpace(d.raw[d.at]) {
		d.at++
	}
	if from == d.at {
		return span{from: -1}
	}
	return span{int32(from), int32(d.at)}
}

// quoted reads an identifier in quotes. It ends with the doctype at the latest.
func (d *doctypeReader) quoted() span {
	d.skip()
	if d.at >= len(d.raw) || d.raw[d.at] != '"' && d.raw[d.at] != '\'' {
		return span{from: -1}
	}
	from := d.at + 1
	to := len(d.raw)
	if i := bytes.IndexByte(d.raw[from:], d.raw[d.at]); i >= 0 {
		to = from + i
		d.at = to + 1
	} else {
		d.at = to
	}
	return span{int32(from), int32(to)}
}
