package deploy

import (
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/resources"
)

// Resources are all resources of this package in JetStream.
func Resources(cfg Config) []resources.Resource {
	cfg = cfg.WithDefaults()
	workers, bundles, owners := cfg.workers(), cfg.bundles(), cfg.owners()
	return []resources.Resource{{Bucket: &workers}, {Objects: &bundles}, {Bucket: &owners}}
}

func (c Config) workers() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: c.Bucket, Description: "Pinwheel's workers: key <owner>.<name>, one revision a version",
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
