package nodecrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
)

// element is an element of the field of GCM: the bits of a block, the first one the highest of high.
type element struct{ high, low uint64 }

func elementOf(b []byte) element {
	return element{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func (x element) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, x.high), x.low)
}

func (x element) plus(y element) element { return element{x.high ^ y.high, x.low ^ y.low} }

// times multiplies, NIST SP 800-38D, 6.3. The time that it takes shows nothing of the factors.
func (x element) times(y element) (z element) {
	for _, half := range [2]uint64{x.high, x.low} {
		for i := range 64 {
			take := -(half >> (63 - i) & 1)
			z.high ^= y.high & take
			z.low ^= y.low & take
			over := -(y.low & 1)
			y.low = y.low>>1 | y.high<<63
			y.high = y.high>>1 ^ over&(0xe1<<56)
		}
	}
	return z
}

// inverse returns x to the power of 2 ** 128 - 2.
func (x element) inverse() element {
	z := element{high: 1 << 63}
	for range 127 {
		x = x.times(x)
		z = z.times(x)
	}
	return z
}

// gcm is AES-GCM in parts. Go's has none.
type gcm struct {
	block cipher.Block
	h     element
	first [aes.BlockSize]byte // the counter from which the tag is made
}

func newGCM(key, iv []byte) (*gcm, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if len(iv) == 0 || len(iv) > MaxDerived {
		return nil, errors.New("the iv has a wrong length")
	}
	g := &gcm{block: block}
	var zero [aes.BlockSize]byte
	block.Encrypt(zero[:], zero[:])
	g.h = elementOf(zero[:])
	if len(iv) == 12 {
		copy(g.first[:], iv)
		g.first[15] = 1
		return g, nil
	}
	padded := append(append([]byte(nil), iv...), make([]byte, (16-len(iv)%16)%16+8)...)
	sum, err := g.hash(element{}, binary.BigEndian.AppendUint64(padded, uint64(len(iv))*8))
	copy(g.first[:], sum.append(nil))
	return g, err
}

// fewBlocks is how many blocks are hashed one by one. More are left to Go's own GCM.
const fewBlocks = 128

// hash continues GHASH with whole blocks.
func (g *gcm) hash(y element, blocks []byte) (element, error) {
	if len(blocks) <= fewBlocks*aes.BlockSize {
		for ; len(blocks) > 0; blocks = blocks[aes.BlockSize:] {
			y = y.plus(elementOf(blocks)).times(g.h)
		}
		return y, nil
	}
	// Go's GCM gives a tag for additional data alone: the product of the hash with the lengths added, and a mask.
	aead, err := cipher.NewGCM(g.block)
	if err != nil {
		return y, err
	}
	data := append(y.plus(elementOf(blocks)).append(make([]byte, 0, len(blocks))), blocks[aes.BlockSize:]...)
	var nonce [12]byte
	tag := elementOf(aead.Seal(nil, nonce[:], nil, data))
	var mask [aes.BlockSize]byte
	mask[15] = 1
	g.block.Encrypt(mask[:], mask[:])
	return tag.plus(elementOf(mask[:])).times(g.h.inverse()).plus(element{high: uint64(len(data)) * 8}), nil
}

// gcmState is what lasts between parts.
type gcmState struct {
	sum              element
	additional, data uint64 // bytes taken
	rest             []byte // less than a block of them, which is not in sum
}

func readGCM(b []byte) (s gcmState, err error) {
	if len(b) == 0 {
		return s, nil
	}
	if len(b) < 32 || len(b) >= 48 {
		return s, errors.New("this is no state of GCM")
	}
	s.sum, s.rest = elementOf(b), append([]byte(nil), b[32:]...)
	s.additional, s.data = binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:])
	return s, nil
}

func (s gcmState) bytes() []byte {
	b := s.sum.append(make([]byte, 0, 48))
	b = binary.BigEndian.AppendUint64(b, s.additional)
	return append(binary.BigEndian.AppendUint64(b, s.data), s.rest...)
}

// absorb hashes bytes. pads says that a block that is not whole is filled with zeros.
func (s *gcmState) absorb(g *gcm, b []byte, pads bool) (err error) {
	all := append(s.rest, b...)
	if pads {
		all = append(all, make([]byte, (16-len(all)%16)%16)...)
	}
	n := len(all) &^ 15
	s.sum, err = g.hash(s.sum, all[:n])
	s.rest = append([]byte(nil), all[n:]...)
	return err
}

// MaxGCM is the most that GCM encrypts with one iv, in bytes.
const MaxGCM = 1<<36 - 32

// GCMAdditional takes additional data, and returns the new state. It comes before all other data.
func GCMAdditional(key, iv, state, additional []byte) ([]byte, error) {
	g, err := newGCM(key, iv)
	if err != nil {
		return nil, err
	}
	s, err := readGCM(state)
	if err != nil {
		return nil, err
	}
	if s.data > 0 {
		return nil, errors.New("additional data comes first")
	}
	s.additional += uint64(len(additional))
	err = s.absorb(g, additional, false)
	return s.bytes(), err
}

// GCMUpdate encrypts or decrypts data, and returns the result and the new state.
func GCMUpdate(encrypt bool, key, iv, state, data []byte) (out, next []byte, err error) {
	g, err := newGCM(key, iv)
	if err != nil {
		return nil, nil, err
	}
	s, err := readGCM(state)
	if err != nil {
		return nil, nil, err
	}
	if s.data+uint64(len(data)) > MaxGCM {
		return nil, nil, errors.New("the data is too long for one iv")
	}
	if s.data == 0 {
		if err := s.absorb(g, nil, true); err != nil {
			return nil, nil, err
		}
	}
	out = g.xor(s.data, data)
	s.data += uint64(len(data))
	if encrypt {
		data = out
	}
	err = s.absorb(g, data, false)
	return out, s.bytes(), err
}

// xor encrypts or decrypts data that begins at a byte of the stream. The counter has 32 bits, and wraps.
func (g *gcm) xor(at uint64, data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		counter := g.first
		low := binary.BigEndian.Uint32(counter[12:]) + 1 + uint32(at/aes.BlockSize)
		binary.BigEndian.PutUint32(counter[12:], low)
		skip := int(at % aes.BlockSize)
		n := min(len(data), int((1<<32-uint64(low))*aes.BlockSize)-skip)
		part := make([]byte, skip+n)
		copy(part[skip:], data)
		cipher.NewCTR(g.block, counter[:]).XORKeyStream(part, part)
		out, data, at = append(out, part[skip:]...), data[n:], at+uint64(n)
	}
	return out
}

// GCMTag returns the tag of all that was taken.
func GCMTag(key, iv, state []byte) ([]byte, error) {
	g, err := newGCM(key, iv)
	if err != nil {
		return nil, err
	}
	s, err := readGCM(state)
	if err != nil {
		return nil, err
	}
	if err := s.absorb(g, nil, true); err != nil {
		return nil, err
	}
	lengths := element{s.additional * 8, s.data * 8}
	var mask [aes.BlockSize]byte
	g.block.Encrypt(mask[:], g.first[:])
	return s.sum.plus(lengths).times(g.h).plus(elementOf(mask[:])).append(nil), nil
}
