package events

// Names of the streams and the bucket of a fleet in JetStream. They do not depend on the prefix of the subjects.
const (
	StreamEvents    = "PINWHEEL_EVENTS"    // events to run
	StreamBodies    = "PINWHEEL_BODIES"    // request bodies in parts
	StreamResults   = "PINWHEEL_RESULTS"   // results of idempotent workers
	StreamDead      = "PINWHEEL_DEAD"      // dead letters
	StreamParked    = "PINWHEEL_PARKED"    // events of owners that have too many queued
	StreamSchedules = "PINWHEEL_SCHEDULES" // what is to run later; only the fleet may publish there
	BucketAttempts  = "PINWHEEL_ATTEMPTS"  // records of runs, claims and ends of replays
)
