package isolates

// The numbers that cross between Go and JavaScript; isolates/js/01_ops.js is the other half.

// Go to JavaScript.
const (
	opFetchEvent     = 2
	opTaskEvent      = 3
	opScheduledEvent = 4
	opTimers         = 5
	opResponse       = 6
	opChunk          = 7
	opFetchFailed    = 8
	opQueued         = 9
	opEnv            = 10
	opEnded          = 13
	opHook           = 14
	opCredit         = 15
	opAbort          = 16
)

// JavaScript to Go.
const (
	cmdHandlers   = 1
	cmdReply      = 2
	cmdResult     = 3
	cmdFail       = 4
	cmdDrained    = 5
	cmdRetry      = 6
	cmdNoRetry    = 7
	cmdWaitFailed = 8
	cmdLog        = 9
	cmdTimer      = 10
	cmdClear      = 11
	cmdFetch      = 12
	cmdFetchAbort = 13
	cmdQueue      = 14
	cmdUncaught   = 15
	cmdActing     = 16
	cmdHookDone   = 17
	cmdBody       = 18
)

// Questions of JavaScript.
const (
	askDigest          = 1
	askHMAC            = 2
	askTimingSafeEqual = 3
	askDomainToASCII   = 4
)
