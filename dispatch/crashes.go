package dispatch

// crashes is the account of who ends processes and threads, and what follows for later events. It has two parts:
//
//   - bans: workers and owners. Lost threads, the supervisor and other processes name them. Their events are refused
//     for a time.
//   - quarantine: single events of the stream. Their deliveries are counted. They run watched, alone in the end, and
//     are refused after a crash then.
//
// Both are needed: only an event of the stream has a count of deliveries, and it may be the only bad one of a good
// worker. A worker that costs threads or dies of direct events can only be named as a whole.
//
// refuse, started and ended are called for each event, as those of the limits are (gate.go). takes, takesBack and next
// concern events that wait in the quarantine and not in the queues of their owners. lost, suspected and learn add what
// became known. step does what is due, and due says when. d.mu must be held for all methods.
type crashes struct {
	bans
	quarantine
}
