// Package queue puts together what waits for workers: events that have not ended, as they are stored and as processes
// have them, and sources, as NATS and the processes know them. Commands and the console show it.
package queue
