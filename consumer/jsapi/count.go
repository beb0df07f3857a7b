package jsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// BehindAll is an offset after the last subject: the answer has the number of subjects, and names none.
const BehindAll = 1 << 30

// countWait is how long a count may take.
const countWait = 5 * time.Second

// CountMessages counts the messages of a filter with few subjects: at most a hundred thousand after offset. It counts
// one message for each of the other subjects.
func CountMessages(ctx context.Context, nc *nats.Conn, stream, filter string, offset int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, countWait)
	defer cancel()
	subjects, total, err := CountSubjects(ctx, nc, stream, filter, offset)
	if err != nil {
		return 0, err
	}
	n := max(0, int(total)-len(subjects))
	for _, of := range subjects {
		n += int(of)
	}
	return n, nil
}

// CountSubjects asks how many messages each subject of a filter has. nats-server names at most a hundred thousand at a
// time, from offset on. total is the number of subjects.
func CountSubjects(ctx context.Context, nc *nats.Conn, stream, filter string,
	offset int) (counts map[string]uint64, total uint64, err error) {
	// a string and a number cannot fail
	ask, _ := json.Marshal(map[string]any{"subjects_filter": filter, "offset": offset})
	m, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, ask)
	if err != nil {
		return nil, 0, fmt.Errorf("stream %s: %w", stream, err)
	}
	var a struct {
		Total uint64 `json:"total"` // absent when there is none
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := Decode(m.Data, &a); err != nil {
		return nil, 0, fmt.Errorf("stream %s: %w", stream, err)
	}
	return a.State.Subjects, a.Total, nil
}
