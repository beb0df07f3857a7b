package sources

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// BucketSources is the KV bucket with a record for each consumer that the fleet has at a source.
const BucketSources = "PINWHEEL_SOURCES"

// bucketBytes bounds the bucket: a record has a few hundred bytes.
const bucketBytes = 16 << 20

// Bucket is the configuration of the bucket.
func Bucket(replicas int) *jetstream.KeyValueConfig {
	return &jetstream.KeyValueConfig{Bucket: BucketSources, Description: "Consumers of workers' sources",
		History: 1, MaxBytes: bucketBytes, Replicas: replicas, Storage: jetstream.FileStorage}
}

// Metadata of a consumer that the fleet made.
const (
	metaSource = "pinwheel.source" // the ID of its record
	metaWorker = "pinwheel.worker" // OWNER/WORKER
)

// Record is what the fleet knows of a consumer that it has at a source. It is stored before the consumer is made, so
// that no consumer is forgotten.
type Record struct {
	ID         string        `json:"id"` // secret: nobody can guess the message ids of the events
	Owner      string        `json:"owner"`
	Worker     string        `json:"worker"`
	N          int           `json:"n"`
	Connection string        `json:"connection,omitempty"`
	Stream     string        `json:"stream"`
	Filters    []string      `json:"filters,omitempty"`
	Start      workers.Start `json:"start,omitzero"`
	Made       time.Time     `json:"made"`
	// Created is when the stream was created, in Unix nanoseconds; 0 = there was no consumer yet. Floor is a sequence up
	// to which all messages are acked.
	Created int64  `json:"created,omitempty"`
	Floor   uint64 `json:"floor,omitempty"`
	// Removed is when the worker had the source no more; zero = it has it.
	Removed time.Time `json:"removed,omitzero"`

	revision uint64
}

func newRecord(owner, worker string, n int, s workers.Source, now time.Time) Record {
	return Record{ID: rand.Text(), Owner: owner, Worker: worker, N: n, Connection: s.Connection, Stream: s.StreamName(),
		Filters: s.Filters(), Start: s.Start, Made: now.UTC()}
}

func (r Record) key() string { return r.Owner + "." + r.Worker + "." + strconv.Itoa(r.N) }

// Consumer is the name of the consumer: pinwheel-OWNER-WORKER-N. A hyphen of a name is a tilde, which no name has: two
// workers have never the same consumer.
func (r Record) Consumer() string {
	name := func(s string) string { return strings.ReplaceAll(s, "-", "~") }
	return "pinwheel-" + name(r.Owner) + "-" + name(r.Worker) + "-" + strconv.Itoa(r.N)
}

func (r Record) target() string { return r.Owner + "/" + r.Worker }

// of reports whether the record is one of the source, apart from its filters.
func (r Record) of(s workers.Source) bool {
	return r.Connection == s.Connection && r.Stream == s.StreamName()
}

func (r Record) hasFilters(s workers.Source) bool { return slices.Equal(r.Filters, s.Filters()) }

// records are what the bucket has.
type records struct{ kv jetstream.KeyValue }

// openRecords creates the bucket if it is missing.
func openRecords(ctx context.Context, k *resources.Reconciler, replicas int) (records, error) {
	kv, err := k.Bucket(ctx, *Bucket(replicas))
	return records{kv}, err
}

// list returns the records that match, by key.
func (b records) list(ctx context.Context, pattern string) ([]Record, error) {
	watch, err := b.kv.Watch(ctx, pattern, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", BucketSources, err)
	}
	defer resources.StopWatch(watch)
	var all []Record
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e := <-watch.Updates():
			if e == nil {
				return all, nil
			}
			r := Record{revision: e.Revision()}
			if err := json.Unmarshal(e.Value(), &r); err != nil || r.key() != e.Key() {
				return nil, fmt.Errorf("bucket %s: %s is no record of this release", BucketSources, e.Key())
			}
			all = append(all, r)
		}
	}
}

// errOvertaken says that another process changed a record first.
var errOvertaken = errors.New("another process changed the record of the source")

// put stores a record if nobody has changed it meanwhile.
func (b records) put(ctx context.Context, r Record) (Record, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	var revision uint64
	if r.revision == 0 {
		revision, err = b.kv.Create(ctx, r.key(), text)
	} else {
		revision, err = b.kv.Update(ctx, r.key(), text, r.revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) || isOvertaken(err) {
		return r, errOvertaken
	}
	if err == nil {
		r.revision = revision
	}
	return r, err
}

// remove removes a record, also if a process has noted meanwhile how far it is.
func (b records) remove(ctx context.Context, r Record) error {
	for {
		err := b.kv.Delete(ctx, r.key(), jetstream.LastRevision(r.revision))
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) && !isOvertaken(err) {
			return err
		}
		now, err := b.list(ctx, r.key())
		if err != nil || len(now) == 0 || now[0].ID != r.ID {
			return err
		}
		r = now[0]
	}
}

func isOvertaken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
