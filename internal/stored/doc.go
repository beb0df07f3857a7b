// Package stored reads messages of streams. It asks in the way whose answer keeps what JetStream says of a message (subject, sequence, time) apart
// from the headers, which are its publisher's. A direct get does not: it puts its own headers behind those of the publisher, who may have written
// the same names.
package stored
