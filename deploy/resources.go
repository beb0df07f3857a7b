package deploy

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Bounds of the buckets. JetStream reserves them.
const (
	// DefaultMaxBytes is Config.MaxBytes of a fleet that says nothing else: for 400 owners, five versions of 250 KiB each.
	DefaultMaxBytes = 512 << 20
	// DefaultAssetsMaxBytes is Config.AssetsMaxBytes of a fleet that says nothing else: for 50 owners with 10 MiB each.
	DefaultAssetsMaxBytes = 512 << 20
	// Unlimited as Config.MaxBytes leaves the buckets of versions and bundles without a bound, and as
	// Config.AssetsMaxBytes that of files.
	Unlimited = -1
	// MaxBytesVariable is the variable of the environment that decides Config.MaxBytes.
	MaxBytesVariable = "PINWHEEL_WORKERS_MAX_BYTES"
	// AssetsMaxBytesVariable is the variable that decides Config.AssetsMaxBytes.
	AssetsMaxBytesVariable = "PINWHEEL_ASSETS_MAX_BYTES"
)

// part is one of so many parts of MaxBytes: the size of a bucket of smaller records.
func (c Config) part(of int64) int64 {
	most := c.MaxBytes
	if most == Unlimited {
		most = DefaultMaxBytes
	}
	return max(1<<20, most/of)
}

// VariableOf is the variable of the environment that decides the size of a resource of this package. stream holds the
// resource. "" = none: the size is fixed, as that of the secrets, or the resource is another package's.
func VariableOf(stream string) string {
	switch stream {
	case resources.BucketStream(assetstore.Bucket):
		return AssetsMaxBytesVariable
	case resources.BucketStream(DefaultBucket), resources.ObjectsStream(DefaultObjects),
		resources.BucketStream(BucketDeployments), resources.BucketStream(BucketOwners), resources.BucketStream(BucketRoutes):
		return MaxBytesVariable
	}
	return ""
}

// Resources are all resources of this package in JetStream.
func Resources(cfg Config) []resources.Resource {
	cfg = cfg.WithDefaults()
	workers, bundles, deployments, owners, secrets, routes :=
		cfg.workers(), cfg.bundles(), cfg.deployments(), cfg.owners(), cfg.secrets(), cfg.routes()
	return append([]resources.Resource{{Bucket: &workers}, {Objects: &bundles}, {Bucket: &deployments}, {Bucket: &owners},
		{Bucket: &secrets}, {Bucket: &routes}}, assetstore.Resources(cfg.assets())...)
}

func (c Config) assets() assetstore.Config {
	return assetstore.Config{MaxBytes: max(0, c.AssetsMaxBytes), Replicas: c.Replicas, Log: c.Log}
}

func (c Config) workers() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: c.Bucket, Description: "Pinwheel's workers: key <owner>.<name>, one revision a version",
		History: History, MaxBytes: c.MaxBytes, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (c Config) deployments() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketDeployments, Description: "Which versions of Pinwheel's workers are active: key <owner>.<name>, one revision a deployment",
		History: History, MaxBytes: c.part(8), Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (c Config) bundles() jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{
		Bucket: c.Objects, Description: "Pinwheel's bundles that do not fit a record",
		MaxBytes: c.MaxBytes, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (c Config) owners() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketOwners, Description: "What Pinwheel's owners may have", History: 5, MaxBytes: c.part(32),
		Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

// One value of each key: an old value of a secret must not stay anywhere.
func (c Config) secrets() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketSecrets, Description: "Pinwheel's secrets, encrypted with age: key <owner>.<worker>.<name>, or <owner>.=.<name>",
		History: 1, MaxValueSize: secrets.MaxSealed + 4<<10, MaxBytes: secretsBytes, Replicas: c.Replicas,
		Storage: jetstream.FileStorage,
	}
}

func (c Config) routes() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketRoutes, Description: "Which of Pinwheel's workers has a route of the HTTP gateway: key <hash of the route>",
		History: 1, LimitMarkerTTL: routeMarkers, MaxBytes: c.part(32), Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

// routeMarkers is how long the markers of routes that were given up stay: owners choose the names of routes.
const routeMarkers = time.Hour
