package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// BucketDeployments is the KV bucket of the deployments: which versions of each worker are active. The key is that of
// the worker's versions.
const BucketDeployments = "PINWHEEL_DEPLOYMENTS"

// Formats of deployment records. A process skips a record whose format it does not know, and goes on with what it has.
const (
	deploymentFormat1 = 1
	deploymentFormat2 = 2 // has before
)

// deploymentRecord is a deployment, as the KV bucket has it.
type deploymentRecord struct {
	Format int    `json:"format"`
	Owner  string `json:"owner"`
	Name   string `json:"name"`
	// Seen is the newest revision of the worker's versions that the deployment takes into account. A version that was
	// stored later replaces it, unless it is staged. When all versions are newer, the worker was removed in between, and
	// the deployment is that of another one.
	Seen uint64 `json:"seen"`
	workers.Deployment
}

// storedDeployment is a deployment with its place in the bucket.
type storedDeployment struct {
	workers.Deployment
	seen     uint64
	revision uint64 // of the newest entry of any kind; 0 = there is none
}

// exists reports whether there is a deployment.
func (d storedDeployment) exists() bool { return d.Number > 0 }

// storedVersion is what decides which version runs.
type storedVersion struct {
	version  string
	number   int
	staged   bool
	at       time.Time
	revision uint64
}

// history is what the bucket has of a worker's versions.
type history struct {
	versions   []storedVersion // readable, oldest first
	oldest     uint64          // revision of the first entry, readable or not
	unreadable bool            // some entries cannot be read
}

// has reports whether a version may be among them.
func (h history) has(version string) bool {
	return h.unreadable || slices.ContainsFunc(h.versions, func(v storedVersion) bool { return v.version == version })
}

// lost reports whether d is the deployment of another worker of this name, which was removed, or whose bucket is gone.
func (h history) lost(d storedDeployment) bool {
	return d.seen < h.oldest || slices.ContainsFunc(d.Split, func(s workers.Share) bool { return !h.has(s.Version) })
}

// effective is the deployment of a worker that has these versions.
//
// The newest version that is neither staged nor known to the deployment record has everything: such a version is active
// from the moment it is stored. So there is no moment in which a deploy is half done, and what earlier releases deploy
// is active too.
func (h history) effective(d storedDeployment) workers.Deployment {
	if d.exists() && h.lost(d) {
		d = storedDeployment{}
	}
	holds := d.Deployment
	for _, v := range h.versions {
		if v.staged || v.revision <= d.seen {
			continue
		}
		number := holds.Number + 1
		if !d.exists() {
			number = v.number
		}
		holds = workers.Deployment{Number: number, Split: []workers.Share{{Version: v.version, Percent: 100}},
			Aliases: d.Aliases, At: v.at}
	}
	return holds
}

func (s *Store) deployment(ctx context.Context, owner, name string) (storedDeployment, error) {
	e, err := s.deployments.Get(ctx, key(owner, name))
	var deleted *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrKeyDeleted), errors.Is(err, jetstream.ErrKeyNotFound), errors.As(err, &deleted) &&
		deleted.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return s.deletedDeployment(ctx, owner, name)
	case err != nil:
		return storedDeployment{}, fmt.Errorf("read deployment of %s/%s: %w", owner, name, err)
	}
	return decodeDeployment(e)
}

// deletedDeployment has the revision of the marker of a deletion, which the next record must name.
func (s *Store) deletedDeployment(ctx context.Context, owner, name string) (storedDeployment, error) {
	history, err := s.deployments.History(ctx, key(owner, name))
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return storedDeployment{}, fmt.Errorf("read deployment of %s/%s: %w", owner, name, err)
	}
	if len(history) == 0 {
		return storedDeployment{}, nil
	}
	last := history[len(history)-1]
	if last.Operation() == jetstream.KeyValuePut { // stored just now
		return decodeDeployment(last)
	}
	return storedDeployment{revision: last.Revision()}, nil
}

func decodeDeployment(e jetstream.KeyValueEntry) (storedDeployment, error) {
	var head struct {
		Format int `json:"format"`
	}
	var r deploymentRecord
	err := json.Unmarshal(e.Value(), &head)
	if err == nil && (head.Format < deploymentFormat1 || head.Format > deploymentFormat2) {
		err = fmt.Errorf("it has format %d: this process reads %d to %d", head.Format, deploymentFormat1, deploymentFormat2)
	}
	if err == nil {
		err = strictDecode(e.Value(), &r)
	}
	if err == nil && key(r.Owner, r.Name) != e.Key() {
		err = fmt.Errorf("it is of %s/%s", r.Owner, r.Name)
	}
	if err == nil {
		err = checkTarget(r.Owner, r.Name)
	}
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return storedDeployment{}, fmt.Errorf("deployment record at %s: %w", e.Key(), err)
	}
	r.Stored = e.Created()
	return storedDeployment{r.Deployment, r.Seen, e.Revision()}, nil
}

// putDeployment stores the deployment of a worker, if the bucket still has the one of k.
func (s *Store) putDeployment(ctx context.Context, owner, name string, d workers.Deployment, k kept) error {
	d.At = d.At.UTC()
	if d.Split == nil {
		d.Split = []workers.Share{}
	}
	if err := d.Validate(); err != nil {
		return fmt.Errorf("deployment of %s/%s: %w", owner, name, err)
	}
	format := deploymentFormat1
	if len(d.Before) > 0 {
		format = deploymentFormat2
	}
	text, err := json.Marshal(deploymentRecord{format, owner, name, k.revision, d})
	if err != nil {
		return fmt.Errorf("encode deployment: %w", err)
	}
	if _, err := s.deployments.Update(ctx, key(owner, name), text, k.deployment.revision); err != nil {
		err = resources.Stranger(err, "$KV."+BucketDeployments+"."+key(owner, name))
		return fmt.Errorf("store deployment: %w", s.full(ctx, BucketDeployments, err))
	}
	return nil
}

// Deployments are the kept deployments of a worker, oldest first. The last one is in effect. The error is ErrNotFound
// when there is no such worker.
func (s *Store) Deployments(ctx context.Context, owner, name string) ([]workers.Deployment, error) {
	if err := checkTarget(owner, name); err != nil {
		return nil, err
	}
	k, err := s.kept(ctx, owner, name)
	if err != nil {
		return nil, err
	}
	if len(k.records) == 0 {
		return nil, notFound(owner, name)
	}
	entries, err := s.deployments.History(ctx, key(owner, name))
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("read deployments of %s/%s: %w", owner, name, err)
	}
	var list []workers.Deployment
	for _, e := range entries {
		if e.Operation() != jetstream.KeyValuePut {
			list = nil
			continue
		}
		d, err := decodeDeployment(e)
		switch {
		case err != nil:
			return nil, err
		case d.seen < k.oldest: // of a worker of this name that was removed, or older than all that is kept
		default:
			list = append(list, d.Deployment)
		}
	}
	if len(list) == 0 {
		list = append(list, k.effective())
	}
	return list, nil
}
