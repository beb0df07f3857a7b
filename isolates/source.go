package isolates

import "github.com/pinwheel-run/pinwheel/events"

// Source gives threads their work and takes back what became of it; *dispatch.Dispatcher is one.
// Both methods are called from the thread of that number only.
type Source interface {
	// Next returns at most free attempts to start now. It never blocks. After it returned
	// nothing, Pool.Wake tells when to ask again.
	Next(thread, free int) []*events.Attempt
	// Report says what became of attempts. The slice is the thread's again afterwards.
	Report(thread int, reports []events.Report)
}
