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
	opPart           = 18
	opWorked         = 30
	opSocketOpened   = 31
	opSocketMessage  = 32
	opSocketSent     = 33
	opSocketClosed   = 34
	opUploadWanted   = 40
	opRedirect       = 41
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
	cmdPull       = 19
	cmdSubtle     = 30
	cmdZip        = 31
	cmdZipClose   = 32
	cmdSocketOpen = 33
	cmdSocketSend = 34
	cmdSocketEnd  = 35
	cmdUpload     = 40
	cmdFetchMore  = 41
)

// Questions of JavaScript.
const (
	askTimingSafeEqual = 3
	askDomainToASCII   = 4
	askSubtle          = 30
	askDecode          = 31
)

// What crypto.subtle asks of Go, at once by askSubtle or as cmdSubtle. Arguments and answers: subtle.go.
const (
	subtleDigest = iota + 1
	subtleHMAC
	subtleHMACEqual
	subtleEncryptCBC
	subtleDecryptCBC
	subtleCTR
	subtleEncryptGCM
	subtleDecryptGCM
	subtleWrapKW
	subtleUnwrapKW
	subtleHKDF
	subtlePBKDF2

	subtleRSAGenerate
	subtleRSAImport
	subtleRSAImportParts
	subtleRSAExport
	subtleRSAParts
	subtleSignPKCS1
	subtleVerifyPKCS1
	subtleSignPSS
	subtleVerifyPSS
	subtleEncryptOAEP
	subtleDecryptOAEP

	subtleECGenerate
	subtleECImportPoint
	subtleECImportScalar
	subtleECImport
	subtleECExport
	subtleSignECDSA
	subtleVerifyECDSA
	subtleECDH

	subtleOKPGenerate
	subtleOKPImportSeed
	subtleOKPImport
	subtleOKPExport
	subtleSignEd25519
	subtleVerifyEd25519
	subtleX25519
	subtleSignEd448
	subtleVerifyEd448
	subtleX448
)
