package deploy

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/resources"
	"github.com/pinwheel-run/pinwheel/internal/secrets"
)

// Resources are all resources of this package in JetStream.
func Resources(cfg Config) []resources.Resource {
	cfg = cfg.WithDefaults()
	workers, bundles, deployments, owners, secrets, routes := cfg.workers(), cfg.bundles(), cfg.deployments(), cfg.owners(), cfg.secrets(), cfg.routes()
	return []resources.Resource{{Bucket: &workers}, {Objects: &bundles}, {Bucket: &deployments}, {Bucket: &owners}, {Bucket: &secrets}, {Bucket: &routes}}
}

func (c Config) workers() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: c.Bucket, Description: "Pinwheel's workers: key <owner>.<name>, one revision a version",
		History: History, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (c Config) deployments() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketDeployments, Description: "Which versions of Pinwheel's workers are active: key <owner>.<name>, one revision a deployment",
		History: History, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (c Config) bundles() jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{
		Bucket: c.Objects, Description: "Pinwheel's bundles that do not fit a record",
		Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (c Config) owners() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketOwners, Description: "What Pinwheel's owners may have", History: 5, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

// One value of each key: an old value of a secret must not stay anywhere.
func (c Config) secrets() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketSecrets, Description: "Pinwheel's secrets, encrypted with age: key <owner>.<worker>.<name>, or <owner>.=.<name>",
		History: 1, MaxValueSize: secrets.MaxSealed + 4<<10, MaxBytes: secretsBytes, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

func (c Config) routes() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: BucketRoutes, Description: "Which of Pinwheel's workers has a route of the HTTP gateway: key <hash of the route>",
		History: 1, LimitMarkerTTL: routeMarkers, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

// routeMarkers is how long the markers of routes that were given up stay: owners choose the names of routes.
const routeMarkers = time.Hour
