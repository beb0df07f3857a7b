package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// List is a comma-separated value. Its parts have no surrounding white space.
type List []string

// Set parses the value. It leaves out empty parts.
func (l *List) Set(value string) error {
	*l = nil
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*l = append(*l, part)
		}
	}
	return nil
}

// String joins the parts with commas.
func (l List) String() string { return strings.Join(l, ",") }

// Bytes is a size in bytes.
type Bytes int64

// units are the units of sizes. Longer names come first, because all of them end with "B".
var units = []struct {
	name   string
	factor int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1}, {"", 1},
}

// Set parses a whole number with a unit: B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024). No unit
// means B.
func (b *Bytes) Set(value string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(value, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.factor {
			break
		}
		*b = Bytes(int64(n) * u.factor)
		return nil
	}
	return fmt.Errorf("%q is not a size like 500MB or 20GiB", value)
}

// String formats the size in the largest unit that divides it.
func (b Bytes) String() string {
	best := strconv.FormatInt(int64(b), 10) + "B"
	for _, u := range units[:8] {
		if b != 0 && int64(b)%u.factor == 0 {
			if s := strconv.FormatInt(int64(b)/u.factor, 10) + u.name; len(s) < len(best) {
				best = s
			}
		}
	}
	return best
}
