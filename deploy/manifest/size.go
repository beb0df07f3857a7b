package manifest

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// sizeText is a size with a unit. A kilobyte has 1024 bytes, as in Buntime.
var sizeText = regexp.MustCompile(sizePattern)

// sizePattern has no flags: a JSON Schema has it, too.
const sizePattern = `^([0-9]{1,15})([bB]|[kKmMgG]i?[bB])$`

// How a size is written, and its units.
const (
	sizeShape = `a size like "10mb"`
	sizeMore  = "its units are b, kb, mb, gb, and kb is 1024 bytes"
)

// sizeOf reads a size; false = it is none, or too large for a number.
func sizeOf(n *node) (workers.Bytes, bool) {
	if i, ok := n.whole(); ok {
		return workers.Bytes(i), i >= 0
	}
	m := sizeText.FindStringSubmatch(n.scalar)
	if n.kind != text || m == nil {
		return 0, false
	}
	i, err := strconv.ParseInt(m[1], 10, 64)
	shift := map[byte]int{'b': 0, 'k': 10, 'm': 20, 'g': 30}[strings.ToLower(m[2])[0]]
	return workers.Bytes(i << shift), err == nil && i <= math.MaxInt64>>shift
}

// size reads a number of bytes, or a text with a unit.
func (d *decoder) size(path string, n *node, v reflect.Value) error {
	size, ok := sizeOf(n)
	switch {
	case !ok:
		return d.fail(n.at, "%s is %s: it is a whole number of bytes, or %s; %s", path, n, sizeShape, sizeMore)
	case size == 0:
		return d.fail(n.at, "%s is 0: it is above 0; without it the default holds", path)
	}
	v.SetInt(int64(size))
	return nil
}
