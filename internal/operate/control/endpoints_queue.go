package control

// Endpoints about events that wait or run.
var (
	PauseWorkers = Endpoint[Pause, PausedOwner]{
		Name:    "pause",
		Doc:     "Keeps the events of an owner or a worker from starting until they are resumed.",
		Owner:   func(q *Pause) *string { return &q.Owner },
		Worker:  func(q *Pause) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).pause,
	}
	ResumeWorkers = Endpoint[PauseTarget, PausedOwner]{
		Name:    "resume",
		Doc:     "Lets the events of a paused owner or worker start again.",
		Owner:   func(q *PauseTarget) *string { return &q.Owner },
		Worker:  func(q *PauseTarget) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).resume,
	}
	PausedAll = Endpoint[ListPaused, PausedList]{
		Name:   "paused.list",
		Doc:    "Lists paused owners and workers.",
		Owner:  func(q *ListPaused) *string { return &q.Owner },
		handle: (*Server).listPaused,
	}
	PausedActive = Endpoint[PauseTarget, PausedHere]{
		Name:   "paused.active",
		Doc:    "Returns what is paused of an owner in a process, and how many attempts of it run there.",
		Owner:  func(q *PauseTarget) *string { return &q.Owner },
		Worker: func(q *PauseTarget) *string { return &q.Worker },
		Each:   true,
		handle: (*Server).pausedHere,
	}
	EventsList = Endpoint[ListEvents, EventList]{
		Name:    "events.list",
		Doc:     "Lists events of an owner that have not ended.",
		Owner:   func(q *ListEvents) *string { return &q.Owner },
		Worker:  func(q *ListEvents) *string { return &q.Worker },
		Guarded: true,
		handle:  (*Server).listEvents,
	}
	EventsShow = Endpoint[ShowEvent, QueuedEvent]{
		Name:    "events.show",
		Doc:     "Returns an event that has not ended, with its headers and its body if that fits the answer.",
		Owner:   func(q *ShowEvent) *string { return &q.Owner },
		Worker:  func(q *ShowEvent) *string { return &q.Worker },
		Guarded: true,
		handle:  (*Server).showEvent,
	}
	EventsCancel = Endpoint[CancelEvents, CancelledEvents]{
		Name:    "events.cancel",
		Doc:     "Cancels events of an owner that wait or run.",
		Owner:   func(q *CancelEvents) *string { return &q.Owner },
		Worker:  func(q *CancelEvents) *string { return &q.Worker },
		Guarded: true,
		Process: true,
		Audit:   true,
		handle:  (*Server).cancelEvents,
	}
	EventsPurge = Endpoint[PurgeEvents, Job]{
		Name:    "events.purge",
		Doc:     "Starts a job that takes events of an owner that wait out of the queue.",
		Owner:   func(q *PurgeEvents) *string { return &q.Owner },
		Worker:  func(q *PurgeEvents) *string { return &q.Worker },
		Guarded: true,
		Process: true,
		Audit:   true,
		handle:  by(jobsOf, (*jobs).purgeEvents),
	}
	EventsHeld = Endpoint[AskHeld, HeldEvents]{
		Name:    "events.held",
		Doc:     "Returns what a process holds of an owner, and which of these events run.",
		Owner:   func(q *AskHeld) *string { return &q.Owner },
		Worker:  func(q *AskHeld) *string { return &q.Worker },
		Each:    true,
		Guarded: true,
		handle:  (*Server).heldEvents,
	}
)

// queueEndpoints returns the rows of the table about events that wait or run.
func queueEndpoints() []row {
	return []row{
		PauseWorkers.row(),
		ResumeWorkers.row(),
		PausedAll.row(),
		PausedActive.row(),
		EventsList.row(),
		EventsShow.row(),
		EventsCancel.row(),
		EventsPurge.row(),
		EventsHeld.row(),
	}
}
