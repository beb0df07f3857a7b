// Package stored reads messages of streams. It uses requests whose answers separate what JetStream says about a message
// (subject, sequence, time) from the headers, which are the publisher's. A direct get does not: it puts its own headers
// behind those of the publisher, who may have written the same names.
package stored
