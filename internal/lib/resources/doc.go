// Package resources reconciles Pinwheel's streams, consumers, buckets and object stores in JetStream with what this
// binary wants. It creates what is missing, adds what the engine needs, leaves alone what a newer binary created, and
// reports what differs, field by field. What could shrink or delete what is stored changes only by an explicit command.
package resources
