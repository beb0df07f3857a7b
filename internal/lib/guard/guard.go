// Package guard names the protections against malicious owners. A binary with the build tag unguarded can switch guards
// off, so that a test shows that the attack works without its guard. In all other binaries all guards are on, and Off
// is a constant.
package guard

// Guard is a protection that a test can switch off.
type Guard string

// The guards. docs/guides/security.md says which attack each of them prevents.
const (
	// StoredHeaders: headers that a publisher wrote decide nothing about a stored message.
	StoredHeaders Guard = "stored-headers"
	// StreamLife: acks and deletions for a deleted stream do not reach a new stream of the same name.
	StreamLife Guard = "stream-life"
	// BodyOwner: credits and parts of one owner do not reach the bodies of another.
	BodyOwner Guard = "body-owner"
	// TimerBudget bounds the CPU time of a persistent context between events.
	TimerBudget Guard = "timer-budget"
	// CPUWhileRunning charges CPU time to its owner while an event runs, not only at its end.
	CPUWhileRunning Guard = "cpu-while-running"
	// CrashSuspects: an event that cost a thread does not cost many more.
	CrashSuspects Guard = "crash-suspects"
	// NativeWork: work of V8 that it does not interrupt, and that ends, does not count as a lost thread.
	NativeWork Guard = "native-work"
	// LinearWork bounds the work of Go for one call of a handler.
	LinearWork Guard = "linear-work"
	// RunMemory charges a run for the bytes that Go keeps for it.
	RunMemory Guard = "run-memory"
	// HostConnections: one owner cannot take all connections to a host.
	HostConnections Guard = "host-connections"
	// Redirects: credentials for one origin do not go to the next.
	Redirects Guard = "redirects"
	// PublicAddresses: subrequests reach only public addresses.
	PublicAddresses Guard = "public-addresses"
	// SendRates bounds the tasks that a worker sends.
	SendRates Guard = "send-rates"
	// StoredShares bounds what one owner has stored in each stream.
	StoredShares Guard = "stored-shares"
	// DeployFiles: a deploy reads only files of its project.
	DeployFiles Guard = "deploy-files"
	// PubAckEvents refuses events that are answers of JetStream to a publish.
	PubAckEvents Guard = "puback-events"
	// WritableHeaders: an event with headers that cannot be written again ends with a letter, and no event holds its place
	// in the window for ever.
	WritableHeaders Guard = "writable-headers"
	// RequestRates bounds the requests of an owner to the fleet other than events and calls.
	RequestRates Guard = "request-rates"
	// ModuleChecks: modules that owners deploy are loaded in processes of their own, and refused when they cost these.
	ModuleChecks Guard = "module-checks"
	// FleetPrefix: a fleet with another prefix does not take over the streams of this one.
	FleetPrefix Guard = "fleet-prefix"
	// EventIDs: nobody can tell the ids that the fleet gives events, and an event whose id is taken is not lost.
	EventIDs Guard = "event-ids"
	// EmptyBucket: workers stay installed when their bucket was emptied.
	EmptyBucket Guard = "empty-bucket"
	// OwnerQueues keeps the messages of each owner apart until they are handled, and handles owners in turn.
	OwnerQueues Guard = "owner-queues"
	// SecretBounds bounds the secrets of an owner.
	SecretBounds Guard = "secret-bounds"
	// FileLists bounds the lists of files of versions where they are decoded, and shares the cache of files among owners.
	FileLists Guard = "file-lists"
	// FileRules bounds what _redirects and _headers cost for one request, and charges it to the owner of the files.
	FileRules Guard = "file-rules"
)
