package consumer

// Step is a point between two actions: the process may complete the first and die before the second.
// docs/development/guarantees.md says what happens to an event then. Tests end the process at each step.
type Step string

// The steps. Each is named after the completed action.
const (
	StepReplied      Step = "replied"       // the final reply is published; the event is neither acked nor dead
	StepDeadStored   Step = "dead-stored"   // the dead letter is stored; the event is not acked
	StepDeadNotified Step = "dead-notified" // the notice of the dead letter is published; the event is not acked
	StepClaimed      Step = "claimed"       // a replay is claimed; it has not run
	StepEndStored    Step = "end-stored"    // how a replay ended is stored; its event is not acked
	StepParkStored   Step = "park-stored"   // the parked event is stored; the event is not acked
	StepOvertaken    Step = "overtaken"     // an event that was never delivered is parked; it is still in its lane, too
	StepReturnStored Step = "return-stored" // the record says that nothing ran; the event is not given back
	StepRetryStored  Step = "retry-stored"  // the failed run is recorded; the event waits for the next
	StepRetryDue     Step = "retry-due"     // the record says that the next run has begun; it has not
	StepMoveNoted    Step = "move-noted"    // the record says that the event is being delayed; it is not yet
	StepDelayed      Step = "delayed"       // the event waits for its time among the schedules; it is not acked
	StepResultStored Step = "result-stored" // the result of an idempotent worker is stored; the event is not acked
	StepAcked        Step = "acked"         // the acks are sent; the server has not confirmed them
	StepConfirmed    Step = "confirmed"     // the acks are confirmed; what was stored for the event elsewhere is still there
)
