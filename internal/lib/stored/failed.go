package stored

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// Failure says that nats-server failed to write a stream. From then on it stores nothing there, does not answer
// publishers, and removes nothing. This lasts until nats-server is restarted, even if the disk has room again
// (nats-server 2.14 and 2.15, with one copy).
type Failure struct {
	Stream string
	Cause  string // error of the operating system, such as "no space left on device"
	Detail string // text of nats-server with a path on its machine: not for owners
}

// Error describes the failure in words that owners may read.
func (f *Failure) Error() string {
	return fmt.Sprintf("nats-server has stopped to store anything in %s, because a write failed: %s", f.Stream, f.Cause)
}

// Advice is what to do about a Failure.
const Advice = "free space on nats-server's disk, then restart nats-server, or pinwheel where it is embedded: before that it stores nothing there"

// causes are the texts of operating systems for a failed write. Other errors of JetStream are not such failures.
var causes = []string{
	"no space left on device", "disk quota exceeded", "file too large", "input/output error", "read-only file system",
	"too many open files",
	"permission denied", "stale NFS file handle", "There is not enough space on the disk",
}

// Failed checks whether nats-server has failed to write a stream. It returns nil if not. Only the removal of a message
// shows this without a change: Failed asks to remove a message that cannot exist. In a cluster the replicas would have
// to agree on the removal, so Failed is not for a stream with several copies. The error says why the state is unknown.
func Failed(ctx context.Context, nc *nats.Conn, stream string) (*Failure, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.DELETE."+stream,
		[]byte(`{"seq":18446744073709551615,"no_erase":true}`))
	if err != nil {
		return nil, fmt.Errorf("whether %s can be written: %w", stream, err)
	}
	var a struct {
		Error struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return nil, fmt.Errorf("whether %s can be written: %w", stream, err)
	}
	for _, cause := range causes {
		if strings.Contains(a.Error.Description, cause) {
			return &Failure{stream, cause, a.Error.Description}, nil
		}
	}
	return nil, nil
}
