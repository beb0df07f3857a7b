// Package runs keeps the run history of a fleet: a record of each ended attempt that the rule of its owner chooses. A
// thread that ends an attempt leaves a record in a bounded queue, and never waits. One goroutine of the process stores
// the records in batches. What has no room, or is not stored in time, is dropped and counted.
package runs
