package usage

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
)

// Counts is what was used. Micros are microseconds.
type Counts struct {
	Attempts        uint64  `json:"attempts,omitempty"`
	CPUMicros       uint64  `json:"cpuMicros,omitempty"`
	WallMicros      uint64  `json:"wallMicros,omitempty"`
	BytesIn         uint64  `json:"bytesIn,omitempty"`         // of the bodies of events
	BytesOut        uint64  `json:"bytesOut,omitempty"`        // of the bodies of replies that came with their heads
	StoredByteHours float64 `json:"storedByteHours,omitempty"` // bytes in the KV, object and cache streams, hour by hour
}

// Add adds o.
func (c *Counts) Add(o Counts) {
	c.Attempts, c.CPUMicros, c.WallMicros = c.Attempts+o.Attempts, c.CPUMicros+o.CPUMicros, c.WallMicros+o.WallMicros
	c.BytesIn, c.BytesOut = c.BytesIn+o.BytesIn, c.BytesOut+o.BytesOut
	c.StoredByteHours += o.StoredByteHours
}

// Others stands for workers, or owners, that have no row of their own, because there were too many.
const Others = "~"

// name is a worker. The worker "" is what an owner uses that is of no single worker.
type name struct{ Owner, Worker string }

// row is a row of a stored table.
type row struct {
	Owner  string `json:"o"`
	Worker string `json:"w,omitempty"`
	Counts
}

const (
	// shards are the parts of a table: an owner is in one of them.
	shards = 16
	// ownerRows is how many workers of an owner have a row of their own in the table of a process, and sumRows in a sum.
	ownerRows, sumRows = 500, 50
	// tableBytes bounds a table, as JSON. Beyond it owners have one row each, and beyond a quarter more all new ones
	// together.
	tableBytes = 512 << 10
	// maxDecoded bounds a table as JSON, once more where it is decoded.
	maxDecoded = 4 * tableBytes
	// rowBytes is about what a row takes beside its names.
	rowBytes = 150
)

// shardOf is the shard of an owner, a hexadecimal digit.
func shardOf(owner string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner))
	return fmt.Sprintf("%x", (h.Sum32()^h.Sum32()>>16)%shards)
}

// table is what the workers of a shard have used in some time. Its size is bounded, whatever workers there are.
type table struct {
	rows   map[name]*Counts
	owners map[string]int // rows of workers with a name
	bytes  int
	most   int // such rows of an owner; 0: ownerRows
}

func (t *table) add(n name, c Counts) {
	if t.rows == nil {
		t.rows, t.owners = map[name]*Counts{}, map[string]int{}
	}
	of := t.rows[n]
	full := n.Worker != "" && t.owners[n.Owner] >= cmp.Or(t.most, ownerRows)
	if of == nil && (full || t.bytes > tableBytes) {
		n.Worker = Others
		of = t.rows[n]
	}
	if of == nil && t.bytes > tableBytes+tableBytes/4 {
		n = name{Others, Others}
		of = t.rows[n]
	}
	if of == nil {
		of = &Counts{}
		t.rows[n] = of
		if n.Worker != "" {
			t.owners[n.Owner]++
		}
		t.bytes += rowBytes + len(n.Owner) + len(n.Worker)
	}
	of.Add(c)
}

func (t *table) addAll(o *table) {
	for n, c := range o.rows {
		t.add(n, *c)
	}
}

// sum is t with rows for the sumRows workers of an owner that ran most. The others are counted together.
func (t *table) sum() *table {
	s := &table{most: sumRows}
	for _, n := range slices.SortedFunc(maps.Keys(t.rows), func(a, b name) int {
		return cmp.Or(cmp.Compare(t.rows[b].Attempts, t.rows[a].Attempts), a.compare(b))
	}) {
		s.add(n, *t.rows[n])
	}
	return s
}

func (n name) compare(o name) int {
	return cmp.Or(cmp.Compare(n.Owner, o.Owner), cmp.Compare(n.Worker, o.Worker))
}

// encode makes the value of a key: JSON, compressed with gzip.
func (t *table) encode() ([]byte, error) {
	list := make([]row, 0, len(t.rows))
	for n, c := range t.rows {
		list = append(list, row{n.Owner, n.Worker, *c})
	}
	slices.SortFunc(list, func(a, b row) int { return name{a.Owner, a.Worker}.compare(name{b.Owner, b.Worker}) })
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	w := gzip.NewWriter(&data)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// decode adds what encode made.
func (t *table) decode(data []byte) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
	if err != nil {
		return err
	}
	if len(text) > maxDecoded {
		return fmt.Errorf("a table has more than %d bytes", maxDecoded)
	}
	return t.parse(text)
}

func (t *table) parse(data []byte) error {
	var list []row
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, r := range list {
		t.add(name{r.Owner, r.Worker}, r.Counts)
	}
	return nil
}
