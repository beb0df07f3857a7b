package consumer

// Step is a place between two things of which the process may do the one and die before the other.
// docs/guarantees.md says what becomes of an event then, and tests die at each of them.
type Step string

// The steps, each named for what has just been done.
const (
	StepReplied      Step = "replied"       // the final reply is published; the event is neither acked nor dead
	StepDeadStored   Step = "dead-stored"   // the dead letter is stored; the event is not acked
	StepDeadTold     Step = "dead-told"     // who is to know of the dead letter has it; the event is not acked
	StepClaimed      Step = "claimed"       // a replay is claimed; it has not run
	StepEndStored    Step = "end-stored"    // how a replay ended is stored; its event is not acked
	StepReplayStored Step = "replay-stored" // the event of a dead letter is stored again; the letter is still there
	StepParkStored   Step = "park-stored"   // the parked event is stored; the event is not acked
	StepOvertaken    Step = "overtaken"     // an event that was never delivered is stored among the parked; it is in its lane, too
	StepReturnStored Step = "return-stored" // the record says that nothing ran; the event is not given back
	StepRetryStored  Step = "retry-stored"  // the failed run is recorded; the event waits for the next
	StepRetryDue     Step = "retry-due"     // the record says that the next run has begun; it has not
	StepMoveNoted    Step = "move-noted"    // the record says that the event is being put off; it is not
	StepPutOff       Step = "put-off"       // the event waits for its time among the schedules; it is not acked
	StepResultStored Step = "result-stored" // the result of an idempotent worker is stored; the event is not acked
	StepAcked        Step = "acked"         // the acks are sent; the server has not confirmed them
	StepConfirmed    Step = "confirmed"     // the acks are confirmed; what was stored beside the event is still there
)

// step tells the test that wants to know.
func (c *Consumer) step(s Step) {
	if c.cfg.Step != nil {
		c.cfg.Step(s)
	}
}
