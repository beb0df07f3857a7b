package control

import (
	"context"
	"encoding/json"
	"time"
)

// pool answers like GET /admin/pool, and says which process it is. It also answers a request that it cannot decode,
// because earlier clients sent arbitrary data.
func pool(_ context.Context, s *Server, _ string, _ []byte) (any, error) {
	var self poolMember
	self.Member, self.Processes, self.Left = s.cfg.Process.Members()
	first, err := encodeJSON(self)
	if err != nil {
		return nil, err
	}
	stats, err := encodeJSON(s.cfg.Process.Stats())
	if err != nil {
		return nil, err
	}
	// Both are objects with fields, so this is one with the fields of both.
	return json.RawMessage(string(first[:len(first)-1]) + "," + string(stats[1:])), nil
}

// poolMember is what the answer of pool has beside the figures.
type poolMember struct {
	Member
	Processes []Member `json:"processes"`
	Left      []string `json:"left,omitempty"`
}

// Pool is what the isolates of one process are and do: the fields of its answer that the isolates have
// (docs/reference/control.md, "Pool"). Totals begin with the process.
type Pool struct {
	Member
	PoolCounts
	Discards map[string]uint64 `json:"discards"` // contexts thrown away, by reason
	Kills    map[string]uint64 `json:"kills"`    // isolates closed because an event in them passed a limit, by reason
	Parked   int               `json:"parked"`   // threads lost to fatal errors in V8
	Done     PoolDone          `json:"done"`
	Held     int64             `json:"held_bytes"`    // bytes that Go holds for events
	Charged  int64             `json:"charged_bytes"` // bytes that are charged for all isolates
	Code     PoolCode          `json:"code"`
	Spares   PoolSpares        `json:"spares"`
	Threads  []PoolThread      `json:"threads"`
	Owners   []PoolOwner       `json:"owners"`  // those with the most isolates first
	Workers  []PoolWorker      `json:"workers"` // those with the most contexts first

	// Cells are those that the process has, and CellAccount says what became of others. Earlier releases have neither.
	Cells       []PoolCell  `json:"cells,omitempty"`
	CellAccount CellAccount `json:"cellAccount"`

	Processes []Member `json:"processes"` // as in the answer of flow
	Left      []string `json:"left,omitempty"`
}

// PoolDone counts what a process has done beside turns of JavaScript.
type PoolDone struct {
	WaitUntilFailed uint64            `json:"wait_until_failed"` // promises that rejected
	WaitUntilCut    uint64            `json:"wait_until_cut"`    // events whose work was cut short by a limit
	Offloaded       uint64            `json:"offloaded"`         // operations outside the pinned threads
	OffloadCPU      time.Duration     `json:"offload_cpu"`       // CPU time of those, nanoseconds
	Yielded         uint64            `json:"yielded"`           // turns that left their thread to others
	Piped           uint64            `json:"piped_bytes"`       // bytes of bodies that went on without JavaScript
	Broken          map[string]uint64 `json:"broken"`            // bodies that ended early, by reason
}

// PoolCounts are the figures of a thread, or of all threads of a process.
type PoolCounts struct {
	Total    int `json:"total"`    // isolates that may exist
	Cached   int `json:"cached"`   // isolates that run nothing
	Busy     int `json:"busy"`     // isolates that run something
	Capacity int `json:"capacity"` // isolates that may still be made
	Contexts int `json:"contexts"`
	Running  int `json:"running"` // attempts in a context

	HitRate     float64 `json:"hit_rate"`    // 0 if there were none
	WarmHits    uint64  `json:"warm_hits"`   // attempts that found a context of their version
	ColdStarts  uint64  `json:"cold_starts"` // contexts made
	Resets      uint64  `json:"resets"`      // contexts that were reset after an event to run another
	Evictions   uint64  `json:"evictions"`   // idle isolates closed to make room for another
	Collections uint64  `json:"collections"` // garbage collections in isolates, before runs
	HeapBytes   int64   `json:"heap_bytes"`  // an estimate
	HeapMax     int64   `json:"heap_max"`    // bound of HeapBytes; 0 for a thread, since all threads share it
}

// PoolThread has the figures of a pinned thread.
type PoolThread struct {
	Thread int `json:"thread"`
	// Background threads have a lower priority, and run events of owners that take more than their share.
	Background bool `json:"background,omitempty"`
	PoolCounts
}

// PoolCode describes the cache of compiled code.
type PoolCode struct {
	Versions int    `json:"versions"` // versions with code in the cache
	Bytes    int    `json:"bytes"`
	Made     uint64 `json:"made"`     // entries made
	Hits     uint64 `json:"hits"`     // contexts that started from it
	Rejected uint64 `json:"rejected"` // times that V8 did not accept it
}

// PoolSpares describes the isolates that are made before they are needed.
type PoolSpares struct {
	Ready  int    `json:"ready"`
	Used   uint64 `json:"used"`   // times that one was ready when it was needed
	Missed uint64 `json:"missed"` // times that none was ready
}

// PoolUse are the figures that owners and workers both have.
type PoolUse struct {
	Contexts   int    `json:"contexts"`
	Running    int    `json:"running"`
	WarmHits   uint64 `json:"warm_hits"`
	ColdStarts uint64 `json:"cold_starts"`
}

// PoolOwner has the figures of an owner.
type PoolOwner struct {
	Owner    string `json:"owner"`
	Isolates int    `json:"isolates"`
	PoolUse
	HeapBytes int64 `json:"heap_bytes"`
}

// PoolWorker has the figures of a worker.
type PoolWorker struct {
	Worker string `json:"worker"` // OWNER/WORKER
	PoolUse
}

// PoolCell describes a cell.
type PoolCell struct {
	Class      string    `json:"class"`          // owners of a class share a cell: own:OWNER, own:@GROUP, or a name
	Owners     []string  `json:"owners"`         // whose workers it has had, at most 20
	More       int       `json:"more,omitempty"` // further owners
	Threads    int       `json:"threads"`
	Attempts   int       `json:"attempts"` // in progress
	Bytes      int64     `json:"bytes"`    // of memory that no file backs; 0 = not known
	Began      time.Time `json:"began"`
	Starts     int       `json:"starts"`               // cells that the class has had in this process
	Unconfined []string  `json:"unconfined,omitempty"` // parts of the confinement that the system refused, and why
}

// CellAccount says what became of the cells of a process, and what keeps others from running.
type CellAccount struct {
	Confine     string    `json:"confine"`             // PINWHEEL_CELL_CONFINE
	Cgroups     bool      `json:"cgroups"`             // each cell has one, with limits
	NoCgroups   string    `json:"noCgroups,omitempty"` // why they have none
	Most        int       `json:"most"`                // cells that there may be at once
	Starts      uint64    `json:"starts"`
	Probed      bool      `json:"probed"`               // the next two fields are known
	Unconfined  []string  `json:"unconfined,omitempty"` // parts that the system refuses
	Fault       string    `json:"fault,omitempty"`      // why the last cell did not start
	Waiting     []string  `json:"waiting,omitempty"`    // classes that wait for room, at most 20
	MoreWaiting int       `json:"moreWaiting,omitempty"`
	Ends        []CellEnd `json:"ends,omitempty"` // bad ones of the last hour, the oldest first
}

// CellEnd is the bad end of a cell, or of its start.
type CellEnd struct {
	At     time.Time `json:"at"`
	How    string    `json:"how"` // died, memory (it used too much), lie (it sent what none sends) or start
	Class  string    `json:"class"`
	Owners []string  `json:"owners,omitempty"`
	More   int       `json:"more,omitempty"`
	Why    string    `json:"why"`
}

func (p Pool) from() (self Member, known []Member, left []string) {
	return p.Member, p.Processes, p.Left
}

// Pools asks all processes of the fleet what their isolates are and do, and waits a second at most for those that
// another has named. missing are processes that did not answer. nats.ErrNoResponders means that no process answers. A
// process of an earlier release answers without its ID and its node.
func (c *Client) Pools(ctx context.Context) (all []Pool, missing []Member, err error) {
	return askEach[Pool](ctx, c, "pool", None{}, time.Second)
}
