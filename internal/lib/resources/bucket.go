package resources

import (
	"github.com/nats-io/nats.go/jetstream"
)

// BucketStream is the name of the stream under a KV bucket.
func BucketStream(bucket string) string { return "KV_" + bucket }

// ObjectsStream is the name of the stream under an object store.
func ObjectsStream(bucket string) string { return "OBJ_" + bucket }

// BucketDrift is what an update of a bucket to want would change. have is the configuration of its stream.
func BucketDrift(have jetstream.StreamConfig, want jetstream.KeyValueConfig) []Difference {
	return drift(have, bucketTarget(have, want))
}

// bucketTarget is what the stream of a bucket should be.
func bucketTarget(have jetstream.StreamConfig, want jetstream.KeyValueConfig) jetstream.StreamConfig {
	target := have
	target.Description, target.Storage, target.Replicas = want.Description, want.Storage, max(1, want.Replicas)
	target.MaxMsgsPerSubject, target.MaxAge = max(1, int64(want.History)), want.TTL
	target.MaxBytes, target.MaxMsgSize = bound(want.MaxBytes), bound(want.MaxValueSize)
	target.SubjectDeleteMarkerTTL = want.LimitMarkerTTL
	target.AllowMsgTTL = want.LimitMarkerTTL > 0
	target.Metadata = marked(want.Metadata)
	return target
}

// ObjectsDrift is BucketDrift for an object store.
func ObjectsDrift(have jetstream.StreamConfig, want jetstream.ObjectStoreConfig) []Difference {
	return drift(have, objectsTarget(have, want))
}

// objectsTarget is what the stream of an object store should be.
func objectsTarget(have jetstream.StreamConfig, want jetstream.ObjectStoreConfig) jetstream.StreamConfig {
	target := have
	target.Description, target.Storage, target.Replicas = want.Description, want.Storage, max(1, want.Replicas)
	target.MaxAge, target.MaxBytes = want.TTL, bound(want.MaxBytes)
	target.Metadata = marked(want.Metadata)
	return target
}

func bound[T int32 | int64](n T) T {
	if n == 0 {
		return -1
	}
	return n
}
