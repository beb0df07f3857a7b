// Package resources reconciles Pinwheel's streams, consumers, buckets and object stores in JetStream with what this
// binary wants. It creates what is missing, updates what differs, leaves alone what a newer binary created, and reports
// what differs, field by field.
package resources
