package isolates

// Numbers that Go and JavaScript exchange. isolates/js/runtime/ops.js has the same numbers.

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
	opPart           = 18
	opBatch          = 19
	opMethodEvent    = 20
	opPiped          = 21
	opGathered       = 22
	opWorked         = 30
	opSocketOpened   = 31
	opSocketMessage  = 32
	opSocketSent     = 33
	opSocketClosed   = 34
	opUploadWanted   = 40
	opRedirect       = 41
	opWhole          = 42
	opCalled         = 50
)

// JavaScript to Go.
const (
	cmdHandlers     = 1
	cmdReply        = 2
	cmdResult       = 3
	cmdFail         = 4
	cmdDrained      = 5
	cmdRetry        = 6
	cmdNoRetry      = 7
	cmdWaitFailed   = 8
	cmdLog          = 9
	cmdTimer        = 10
	cmdClear        = 11
	cmdFetch        = 12
	cmdFetchAbort   = 13
	cmdQueue        = 14
	cmdUncaught     = 15
	cmdActing       = 16
	cmdHookDone     = 17
	cmdBody         = 18
	cmdPull         = 19
	cmdDecide       = 20
	cmdBatchDone    = 21
	cmdPipe         = 22
	cmdGather       = 23
	cmdSubtle       = 30
	cmdZip          = 31
	cmdZipClose     = 32
	cmdSocketOpen   = 33
	cmdSocketSend   = 34
	cmdSocketEnd    = 35
	cmdSocketAccept = 36
	cmdUpload       = 40
	cmdFetchMore    = 41
	cmdCall         = 50
)

// Synchronous calls of JavaScript to Go (host.ask).
const (
	askTimingSafeEqual = 3
	askDomainToASCII   = 4
	askSubtle          = 30
	askDecode          = 31
)
