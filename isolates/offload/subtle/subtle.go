// Package subtle carries out the functions of crypto.subtle and of Node's crypto and zlib: it reads their arguments
// from JavaScript's commands and calls webcrypto, nodecrypto and compression.
package subtle

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/offload/compression"
	"github.com/pinwheel-run/pinwheel/isolates/offload/nodecrypto"
	"github.com/pinwheel-run/pinwheel/isolates/offload/webcrypto"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

var errSubtle = errors.New("unknown function of crypto.subtle")

// Now carries out one function of crypto.subtle while JavaScript waits. q has its number and its arguments.
func Now(q *v8x.Commands) offload.Product {
	op := int(q.Int())
	if op <= opPBKDF2 || op >= opDigestUpdate && op <= opGCMTag {
		return Work(op, q, offload.Always)
	}
	// Go's public-key cryptography may keep weak pointers to its arguments. That is fatal if they are not in Go's
	// memory.
	args := q.Detach()
	return Work(op, &args, offload.Always)
}

// Work carries out the function op of crypto.subtle with the arguments of q. Functions that may take long call goOn to
// ask whether to continue.
func Work(op int, q *v8x.Commands, goOn func() error) offload.Product {
	switch {
	case op <= opPBKDF2:
		return symmetric(op, q, goOn)
	case op <= opRSAParts:
		return rsaKeys(op, q)
	case op <= opDecryptOAEP:
		return rsa(op, q)
	case op <= opECDH:
		return ec(op, q)
	case op <= opX448:
		return okp(op, q)
	case op <= opDigestEnd:
		return streamed(op, q)
	case op <= opCRC32:
		return node(op, q, goOn)
	case op <= opBrotli:
		return zip(op, q, goOn)
	case op <= opGCMTag:
		return ciphered(op, q)
	default:
		return keyed(op, q)
	}
}

func symmetric(op int, q *v8x.Commands, goOn func() error) offload.Product {
	switch op {
	case opDigest:
		return offload.Bytes(webcrypto.Digest(q.Text(), q.View()))
	case opHMAC:
		return offload.Bytes(webcrypto.HMAC(q.Text(), q.View(), q.View()))
	case opHMACEqual:
		return offload.Bool(webcrypto.HMACEqual(q.Text(), q.View(), q.View(), q.View()))
	case opEncryptCBC:
		return offload.Bytes(webcrypto.EncryptCBC(q.View(), q.View(), q.View()))
	case opDecryptCBC:
		return offload.Bytes(webcrypto.DecryptCBC(q.View(), q.View(), q.View()))
	case opCTR:
		return offload.Bytes(webcrypto.CTR(q.View(), q.View(), int(q.Int()), q.View()))
	case opEncryptGCM:
		return offload.Bytes(webcrypto.EncryptGCM(q.View(), q.View(), q.View(), int(q.Int()), q.View()))
	case opDecryptGCM:
		return offload.Bytes(webcrypto.DecryptGCM(q.View(), q.View(), q.View(), int(q.Int()), q.View()))
	case opWrapKW:
		return offload.Bytes(webcrypto.WrapKW(q.View(), q.View()))
	case opUnwrapKW:
		return offload.Bytes(webcrypto.UnwrapKW(q.View(), q.View()))
	case opHKDF:
		return offload.Bytes(webcrypto.HKDF(q.Text(), q.View(), q.View(), q.View(), int(q.Int())))
	case opPBKDF2:
		return offload.Bytes(webcrypto.PBKDF2(q.Text(), q.View(), q.View(), int(q.Int()), int(q.Int()), goOn))
	}
	return offload.Failed(errSubtle)
}

// rsaParts returns the parts of an RSA key for JavaScript: its DER, the length of its modulus in bits as 4 bytes, its
// public exponent.
func rsaParts(k webcrypto.RSAKey) [][]byte {
	return [][]byte{k.DER, binary.BigEndian.AppendUint32(nil, uint32(k.Bits)), k.Exponent}
}

func oneRSA(k webcrypto.RSAKey, err error) offload.Product { return offload.List(err, rsaParts(k)...) }

func rsaKeys(op int, q *v8x.Commands) offload.Product {
	switch op {
	case opRSAGenerate:
		private, public, err := webcrypto.GenerateRSA(int(q.Int()), q.View())
		return offload.List(err, append(rsaParts(private), public.DER)...)
	case opRSAImport:
		if q.Text() == "spki" {
			return oneRSA(webcrypto.ImportRSASPKI(q.View()))
		}
		return oneRSA(webcrypto.ImportRSAPKCS8(q.View()))
	case opRSAImportParts:
		return oneRSA(webcrypto.ImportRSAParts(webcrypto.RSAParts{
			N: q.View(), E: q.View(), D: q.View(), P: q.View(), Q: q.View(), DP: q.View(), DQ: q.View(), QI: q.View(),
		}))
	case opRSAExport:
		if q.Text() == "spki" {
			return offload.Bytes(webcrypto.ExportRSASPKI(q.View()))
		}
		return offload.Bytes(webcrypto.ExportRSAPKCS8(q.View()))
	case opRSAParts:
		p, err := webcrypto.ExportRSAParts(q.View(), q.Bool())
		return offload.List(err, p.N, p.E, p.D, p.P, p.Q, p.DP, p.DQ, p.QI)
	}
	return offload.Failed(errSubtle)
}

func rsa(op int, q *v8x.Commands) offload.Product {
	switch op {
	case opSignPKCS1:
		return offload.Bytes(webcrypto.SignPKCS1(q.Text(), q.View(), q.View()))
	case opVerifyPKCS1:
		return offload.Bool(webcrypto.VerifyPKCS1(q.Text(), q.View(), q.View(), q.View()))
	case opSignPSS:
		return offload.Bytes(webcrypto.SignPSS(q.Text(), q.View(), int(q.Int()), q.View()))
	case opVerifyPSS:
		return offload.Bool(webcrypto.VerifyPSS(q.Text(), q.View(), int(q.Int()), q.View(), q.View()))
	case opEncryptOAEP:
		return offload.Bytes(webcrypto.EncryptOAEP(q.Text(), q.View(), q.View(), q.View()))
	case opDecryptOAEP:
		return offload.Bytes(webcrypto.DecryptOAEP(q.Text(), q.View(), q.View(), q.View()))
	}
	return offload.Failed(errSubtle)
}

func ec(op int, q *v8x.Commands) offload.Product {
	switch op {
	case opECGenerate:
		private, public, err := webcrypto.GenerateEC(q.Text())
		return offload.List(err, private, public)
	case opECImportPoint:
		return offload.Bytes(webcrypto.ImportECPoint(q.Text(), q.View()))
	case opECImportScalar:
		return offload.Bytes(webcrypto.ImportECScalar(q.Text(), q.View(), q.View()))
	case opECImport:
		if q.Text() == "spki" {
			return offload.Bytes(webcrypto.ImportECSPKI(q.Text(), q.View()))
		}
		return offload.Bytes(webcrypto.ImportECPKCS8(q.Text(), q.View()))
	case opECExport:
		if q.Text() == "spki" {
			return offload.Bytes(webcrypto.ExportECSPKI(q.Text(), q.View()))
		}
		return offload.Bytes(webcrypto.ExportECPKCS8(q.Text(), q.View()))
	case opSignECDSA:
		return offload.Bytes(webcrypto.SignECDSA(q.Text(), q.Text(), q.View(), q.View()))
	case opVerifyECDSA:
		return offload.Bool(webcrypto.VerifyECDSA(q.Text(), q.Text(), q.View(), q.View(), q.View()))
	case opECDH:
		return offload.Bytes(webcrypto.ECDH(q.Text(), q.View(), q.View()))
	}
	return offload.Failed(errSubtle)
}

func okp(op int, q *v8x.Commands) offload.Product {
	switch op {
	case opOKPGenerate:
		private, public, err := webcrypto.GenerateOKP(q.Text())
		return offload.List(err, private, public)
	case opOKPImportSeed:
		return offload.Bytes(webcrypto.ImportOKPSeed(q.Text(), q.View(), q.View()))
	case opOKPImport:
		if q.Text() == "spki" {
			return offload.Bytes(webcrypto.ImportOKPSPKI(q.Text(), q.View()))
		}
		return offload.Bytes(webcrypto.ImportOKPPKCS8(q.Text(), q.View()))
	case opOKPExport:
		if q.Text() == "spki" {
			return offload.Bytes(webcrypto.ExportOKPSPKI(q.Text(), q.View()))
		}
		return offload.Bytes(webcrypto.ExportOKPPKCS8(q.Text(), q.View()))
	case opSignEd25519:
		return offload.Bytes(webcrypto.SignEd25519(q.View(), q.View()))
	case opVerifyEd25519:
		return offload.Bool(webcrypto.VerifyEd25519(q.View(), q.View(), q.View()))
	case opX25519:
		return offload.Bytes(webcrypto.X25519(q.View(), q.View()))
	case opSignEd448:
		return offload.Bytes(webcrypto.SignEd448(q.View(), q.View(), q.View()))
	case opVerifyEd448:
		return offload.Bool(webcrypto.VerifyEd448(q.View(), q.View(), q.View(), q.View()))
	case opX448:
		return offload.Bytes(webcrypto.X448(q.View(), q.View()))
	}
	return offload.Failed(errSubtle)
}

// streamed are the steps of a digest that is made chunk by chunk.
func streamed(op int, q *v8x.Commands) offload.Product {
	switch op {
	case opDigestUpdate:
		return offload.Bytes(webcrypto.DigestUpdate(q.Text(), q.View(), q.View()))
	case opDigestEnd:
		return offload.Bytes(webcrypto.DigestEnd(q.Text(), q.View()))
	}
	return offload.Failed(errSubtle)
}

// Need returns the least CPU time that the function op takes, and the bytes that it holds beside its arguments, with a
// result that is longer than they are. They are 0 if they are not known. q has its arguments, and is not changed.
func Need(op int, q v8x.Commands) (cpu time.Duration, memory int) {
	switch op {
	case opRSAGenerate:
		return webcrypto.LeastToGenerate(int(q.Int())), 0
	case opScrypt:
		q.Skip()
		q.Skip()
		n, r, p := int(q.Int()), int(q.Int()), int(q.Int())
		return nodecrypto.ScryptWork(n, r, p), nodecrypto.ScryptMemory(n, r, p) + derived(q.Int())
	case opPBKDF2, opNodePBKDF2: // the hash, the password, the salt and the iterations come before the length
		for range 4 {
			q.Skip()
		}
		return 0, derived(q.Int())
	case opKeyGenerate:
		kind := q.Text()
		return nodecrypto.LeastToGenerate(kind, int(q.Int())), 0
	case opDeflatePart:
		return 0, compression.Holds(compression.Gzip)
	case opBrotli:
		return 0, compression.BrotliMemory
	}
	return 0, 0
}

// derived returns the bytes of a derivation's result that may be made: others are refused.
func derived(n int64) int {
	if n < 0 || n > nodecrypto.MaxDerived {
		return 0
	}
	return int(n)
}
