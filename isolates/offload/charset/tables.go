package charset

import (
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Indexes of the standard: the code point of each pointer, 0 if there is none. They are made from the library's tables
// at first use.
var (
	jis0208 = sync.OnceValue(func() []rune {
		return index(japanese.ShiftJIS, 11104, func(p int) []byte {
			lead, trail := byte(p/188), byte(p%188)
			lead += pick(lead < 0x1f, 0x81, 0xc1)
			return []byte{lead, trail + pick(trail < 0x3f, 0x40, 0x41)}
		})
	})
	jis0212 = sync.OnceValue(func() []rune {
		return index(japanese.EUCJP, 94*94, func(p int) []byte { return []byte{0x8f, 0xa1 + byte(p/94), 0xa1 + byte(p%94)} })
	})
	gb18030 = sync.OnceValue(func() []rune {
		table := index(simplifiedchinese.GB18030, 126*190, func(p int) []byte {
			trail := byte(p % 190)
			return []byte{0x81 + byte(p/190), trail + pick(trail < 0x3f, 0x40, 0x41)}
		})
		for pair, r := range gb2022 {
			table[gbPointer(byte(pair>>8), byte(pair))] = r
		}
		gbPrivate(table)
		return table
	})
	big5 = sync.OnceValue(func() []rune {
		return index(traditionalchinese.Big5, 126*157, func(p int) []byte {
			trail := byte(p % 157)
			return []byte{0x81 + byte(p/157), trail + pick(trail < 0x3f, 0x40, 0x62)}
		})
	})
	eucKR = sync.OnceValue(func() []rune {
		return index(korean.EUCKR, 126*190, func(p int) []byte { return []byte{0x81 + byte(p/190), 0x41 + byte(p%190)} })
	})
)

// gb2022 has the characters that the edition of GB 18030 of 2022 moved out of the private use area. The library has an
// older edition.
var gb2022 = map[uint16]rune{
	0xa6d9: 0xfe10, 0xa6da: 0xfe12, 0xa6db: 0xfe11, 0xa6dc: 0xfe13, 0xa6dd: 0xfe14, 0xa6de: 0xfe15, 0xa6df: 0xfe16,
	0xa6ec: 0xfe17, 0xa6ed: 0xfe18, 0xa6f3: 0xfe19, 0xfe59: 0x9fb4, 0xfe61: 0x9fb5, 0xfe66: 0x9fb6, 0xfe67: 0x9fb7,
	0xfe6d: 0x9fb8, 0xfe7e: 0x9fb9, 0xfe90: 0x9fba, 0xfea0: 0x9fbb,
}

// gbPrivate fills the private use areas of GB 18030, which the library leaves out. Afterwards every pair of bytes has a
// code point.
func gbPrivate(table []rune) {
	fill := func(lead, from, to byte, r rune) rune {
		for trail := int(from); trail <= int(to); trail++ {
			if p := gbPointer(lead, byte(trail)); trail != 0x7f && table[p] == 0 {
				table[p] = r
			}
			if trail != 0x7f {
				r++
			}
		}
		return r
	}
	r := rune(0xe000)
	for lead := byte(0xaa); lead <= 0xaf; lead++ {
		r = fill(lead, 0xa1, 0xfe, r)
	}
	for lead := byte(0xf8); lead <= 0xfe; lead++ {
		r = fill(lead, 0xa1, 0xfe, r)
	}
	for lead := byte(0xa1); lead <= 0xa7; lead++ {
		r = fill(lead, 0x40, 0xa0, r)
	}
	for _, run := range gbScattered {
		fill(byte(run.pair>>8), byte(run.pair), byte(run.pair)+run.n-1, run.r)
	}
}

// gbScattered has the runs of private use pairs between pairs that are characters.
var gbScattered = []struct {
	pair uint16
	n    byte
	r    rune
}{
	{0xa2ab, 6, 0xe766}, {0xa2e4, 1, 0xe76d}, {0xa2ef, 2, 0xe76e}, {0xa2fd, 2, 0xe770}, {0xa4f4, 11, 0xe772},
	{0xa5f7, 8, 0xe77d},
	{0xa6b9, 8, 0xe785}, {0xa6f6, 9, 0xe797}, {0xa7c2, 15, 0xe7a0}, {0xa7f2, 13, 0xe7af}, {0xa896, 11, 0xe7bc},
	{0xa8bc, 1, 0x1e3f},
	{0xa8c1, 4, 0xe7c9}, {0xa8ea, 21, 0xe7cd}, {0xa958, 1, 0xe7e2}, {0xa95b, 1, 0xe7e3}, {0xa95d, 3, 0xe7e4},
	{0xa997, 13, 0xe7f4},
	{0xa9f0, 15, 0xe801}, {0xd7fa, 5, 0xe810}, {0xfe51, 3, 0xe816}, {0xfe6c, 1, 0xe831}, {0xfe76, 1, 0xe83b},
	{0xfe91, 1, 0xe855},
}

// gbPointer returns the pointer of two bytes of GB 18030.
func gbPointer(lead, trail byte) int {
	return (int(lead)-0x81)*190 + int(trail) - int(pick(trail < 0x7f, 0x40, 0x41))
}

func pick(first bool, a, b byte) byte {
	if first {
		return a
	}
	return b
}

// index makes a table from an encoding of the library. An entry is the character that the bytes of the pointer encode,
// if they encode exactly one.
func index(e encoding.Encoding, n int, bytes func(pointer int) []byte) []rune {
	table := make([]rune, n)
	d := e.NewDecoder()
	var out [16]byte
	for p := range table {
		d.Reset()
		size, _, err := d.Transform(out[:], bytes(p), true)
		if r, width := utf8.DecodeRune(out[:size]); err == nil && width == size && r != utf8.RuneError {
			table[p] = r
		}
	}
	return table
}

// charmaps are the single-byte encodings. The library leaves out the C1 controls. The standard includes them.
var charmaps = sync.OnceValue(func() map[string]*[128]rune {
	tables := map[string]*[128]rune{}
	for name, m := range map[string]*charmap.Charmap{
		"ibm866": charmap.CodePage866, "iso-8859-2": charmap.ISO8859_2, "iso-8859-3": charmap.ISO8859_3,
		"iso-8859-4": charmap.ISO8859_4,
		"iso-8859-5": charmap.ISO8859_5, "iso-8859-6": charmap.ISO8859_6, "iso-8859-7": charmap.ISO8859_7,
		"iso-8859-8":   charmap.ISO8859_8,
		"iso-8859-8-i": charmap.ISO8859_8, "iso-8859-10": charmap.ISO8859_10, "iso-8859-13": charmap.ISO8859_13,
		"iso-8859-14": charmap.ISO8859_14, "iso-8859-15": charmap.ISO8859_15, "iso-8859-16": charmap.ISO8859_16,
		"koi8-r": charmap.KOI8R,
		"koi8-u": charmap.KOI8U, "macintosh": charmap.Macintosh, "windows-874": charmap.Windows874,
		"windows-1250": charmap.Windows1250,
		"windows-1251": charmap.Windows1251, "windows-1252": charmap.Windows1252, "windows-1253": charmap.Windows1253,
		"windows-1254": charmap.Windows1254, "windows-1255": charmap.Windows1255, "windows-1256": charmap.Windows1256,
		"windows-1257": charmap.Windows1257, "windows-1258": charmap.Windows1258, "x-mac-cyrillic": charmap.MacintoshCyrillic,
	} {
		table := &[128]rune{}
		for i := range table {
			r := m.DecodeByte(byte(0x80 + i))
			if r == utf8.RuneError {
				r = 0
			}
			if r == 0 && i < 0x20 {
				r = rune(0x80 + i)
			}
			table[i] = r
		}
		tables[name] = table
	}
	return tables
})

func singleByte(encoding string) *[128]rune { return charmaps()[encoding] }

// lookup returns the code point of a pointer.
func lookup(table []rune, pointer int) rune {
	if pointer < len(table) {
		return table[pointer]
	}
	return 0
}
