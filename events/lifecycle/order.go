package lifecycle

// Order is what dispatch tells consumer to do with an event that has not ended, and about which there is no verdict: no
// attempt was made, or one goes on.
type Order uint8

// The orders.
const (
	NoOrder    Order = iota
	Return           // give it back to the stream at once
	Park             // its owner has too many waiting: set it aside until there is room
	Watch            // processes died around it: note that it is about to run, and submit it again
	WatchAlone       // the same, and nothing else will run in this process
	Share            // its run goes on, but others run beside it from now on: note that
	Hold             // its owner is paused: set it aside until it is resumed
	HoldWorker       // its worker is paused: the same, apart from events of other workers
)

// Parks reports whether dispatch counts the event among the parked ones from now on.
func (o Order) Parks() bool { return o == Park || o.Holds() }

// Holds reports whether the event waits until something is resumed.
func (o Order) Holds() bool { return o == Hold || o == HoldWorker }

// Watches reports whether dispatch waits until the event is submitted again.
func (o Order) Watches() bool { return o == Watch || o == WatchAlone }

// String is the order as it stands in logs and metrics.
func (o Order) String() string {
	return [...]string{"none", "return", "park", "watch", "watch", "share", "hold", "hold"}[o]
}
