// Package guard names the protections against owners who mean harm. A binary that is built with the tag unguarded can switch one off, so that
// a test shows that the attack works without its guard. In every other binary all guards are on, and Off is a constant.
package guard

// Guard is a protection that a test can switch off.
type Guard string

// The guards. docs/security.md says what each stands against.
const (
	// StoredHeaders keeps headers that a publisher wrote from deciding anything about a stored message.
	StoredHeaders Guard = "stored-headers"
	// StreamLife keeps what belongs to a deleted stream from reaching the one that was made in its place.
	StreamLife Guard = "stream-life"
	// BodyOwner keeps credits and parts of one owner from the bodies of another.
	BodyOwner Guard = "body-owner"
	// TimerBudget bounds the CPU time that a persistent context takes between events.
	TimerBudget Guard = "timer-budget"
	// CPUWhileRunning charges CPU time to its owner while an event runs, not only at its end.
	CPUWhileRunning Guard = "cpu-while-running"
	// CrashSuspects keeps an event that cost a thread from costing more of them.
	CrashSuspects Guard = "crash-suspects"
	// LinearWork bounds what a handler can ask of Go in one call.
	LinearWork Guard = "linear-work"
	// RunMemory charges the bytes that Go holds for a run to it.
	RunMemory Guard = "run-memory"
	// HostConnections keeps one owner from taking all connections to a host.
	HostConnections Guard = "host-connections"
	// Redirects keeps credentials of one origin from the next.
	Redirects Guard = "redirects"
	// PublicAddresses keeps subrequests from addresses that are not public.
	PublicAddresses Guard = "public-addresses"
	// SendRates bounds what a worker sends.
	SendRates Guard = "send-rates"
	// StoredShares bounds what one owner may have stored in each stream.
	StoredShares Guard = "stored-shares"
	// DeployFiles keeps a deploy within the files of its project.
	DeployFiles Guard = "deploy-files"
	// PubAckEvents refuses events that are answers of JetStream to a publish.
	PubAckEvents Guard = "puback-events"
	// RequestRates bounds requests that an owner sends to the fleet beside events and calls.
	RequestRates Guard = "request-rates"
	// FleetPrefix keeps a fleet of another prefix from taking over the streams of this one.
	FleetPrefix Guard = "fleet-prefix"
	// EmptyBucket keeps workers installed when the bucket they come from was emptied.
	EmptyBucket Guard = "empty-bucket"
)
