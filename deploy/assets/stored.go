package assets

// PartBytes is the size of the parts in which a file is stored. The last one may be shorter.
const PartBytes = 128 << 10

// Encoding is how a stored file is compressed.
type Encoding int

// The encodings. The zero Encoding is the file as it is.
const (
	Plain Encoding = iota
	Gzip
	Brotli
)

// Stored says in which encodings a file is stored. Size is the file as it is.
type Stored struct {
	Size   int64 `json:"size"`
	Gzip   int64 `json:"gzip,omitempty"`   // bytes; 0 = not stored
	Brotli int64 `json:"brotli,omitempty"` // bytes; 0 = not stored
}

// SizeOf returns the bytes of the file in an encoding; false = it is not stored so.
func (s Stored) SizeOf(e Encoding) (int64, bool) {
	switch e {
	case Gzip:
		return s.Gzip, s.Gzip > 0
	case Brotli:
		return s.Brotli, s.Brotli > 0
	case Plain:
	}
	return s.Size, true
}
