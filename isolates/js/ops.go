package js

// Numbers that Go and JavaScript exchange. runtime/ops.js has the same numbers.

// Go to JavaScript.
const (
	OpFetchEvent     = 2
	OpTaskEvent      = 3
	OpScheduledEvent = 4
	OpTimers         = 5
	OpResponse       = 6
	OpChunk          = 7
	OpFetchFailed    = 8
	OpQueued         = 9
	OpEnv            = 10
	OpEnded          = 13
	OpHook           = 14
	OpCredit         = 15
	OpAbort          = 16
	OpPart           = 18
	OpBatch          = 19
	OpMethodEvent    = 20
	OpPiped          = 21
	OpGathered       = 22
	OpCancel         = 23
	OpWorked         = 30
	OpSocketOpened   = 31
	OpSocketMessage  = 32
	OpSocketSent     = 33
	OpSocketClosed   = 34
	OpUploadWanted   = 40
	OpRedirect       = 41
	OpWhole          = 42
	OpCalled         = 50
	OpTCPOpened      = 60
	OpTCPData        = 61
	OpTCPSent        = 62
	OpTCPClosed      = 63
	OpLookedUp       = 64
)

// JavaScript to Go.
const (
	CmdHandlers     = 1
	CmdReply        = 2
	CmdResult       = 3
	CmdFail         = 4
	CmdDrained      = 5
	CmdRetry        = 6
	CmdNoRetry      = 7
	CmdWaitFailed   = 8
	CmdLog          = 9
	CmdTimer        = 10
	CmdClear        = 11
	CmdFetch        = 12
	CmdFetchAbort   = 13
	CmdQueue        = 14
	CmdUncaught     = 15
	CmdActing       = 16
	CmdHookDone     = 17
	CmdBody         = 18
	CmdPull         = 19
	CmdDecide       = 20
	CmdBatchDone    = 21
	CmdPipe         = 22
	CmdGather       = 23
	CmdSubtle       = 30
	CmdZip          = 31
	CmdZipClose     = 32
	CmdSocketOpen   = 33
	CmdSocketSend   = 34
	CmdSocketEnd    = 35
	CmdSocketAccept = 36
	CmdRewrite      = 37
	CmdRewriteClose = 38
	CmdUpload       = 40
	CmdFetchMore    = 41
	CmdCall         = 50
	CmdTCPOpen      = 60
	CmdTCPSend      = 61
	CmdTCPMore      = 62
	CmdTCPEnd       = 63
	CmdTCPSecure    = 64
	CmdLookUp       = 65
)

// Synchronous calls of JavaScript to Go (host.ask).
const (
	AskTimingSafeEqual = 3
	AskDomainToASCII   = 4
	AskFrames          = 5
	AskWasm            = 6 // v8x.AskWasm
	AskWasmImport      = 7
	AskWasmTag         = 8
	AskWasmDecode      = 9 // v8x.AskWasmDecode
	AskSubtle          = 30
	AskDecode          = 31
	AskSelector        = 32
)
