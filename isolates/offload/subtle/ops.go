package subtle

// The functions of crypto.subtle, and those of node:crypto and node:zlib. internal.subtleOps of js/runtime/ops.js has
// the same numbers.
const (
	opDigest = iota + 1
	opHMAC
	opHMACEqual
	opEncryptCBC
	opDecryptCBC
	opCTR
	opEncryptGCM
	opDecryptGCM
	opWrapKW
	opUnwrapKW
	opHKDF
	opPBKDF2

	opRSAGenerate
	opRSAImport
	opRSAImportParts
	opRSAExport
	opRSAParts
	opSignPKCS1
	opVerifyPKCS1
	opSignPSS
	opVerifyPSS
	opEncryptOAEP
	opDecryptOAEP

	opECGenerate
	opECImportPoint
	opECImportScalar
	opECImport
	opECExport
	opSignECDSA
	opVerifyECDSA
	opECDH

	opOKPGenerate
	opOKPImportSeed
	opOKPImport
	opOKPExport
	opSignEd25519
	opVerifyEd25519
	opX25519
	opSignEd448
	opVerifyEd448
	opX448

	opDigestUpdate
	opDigestEnd

	opHashUpdate
	opHashEnd
	opHMACUpdate
	opHMACEnd
	opPBKDF2Step
	opNodePBKDF2
	opNodeHKDF
	opScrypt
	opCRC32

	opDeflatePart
	opInflateAll
	opBrotli

	opBlocks
	opCTRFrom
	opChaCha20
	opPoly1305
	opGCMAdditional
	opGCMUpdate
	opGCMTag

	opKeyRead
	opKeyWrite
	opKeyGenerate
	opKeyParts
	opKeyFromParts
	opKeySign
	opKeyVerify
	opKeyEncrypt
	opKeyDecrypt
	opKeyAgree
)
