package isolates

import (
	"encoding/binary"
	"errors"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
	"github.com/pinwheel-run/pinwheel/isolates/webcrypto"
)

// product is what a function of crypto.subtle gave: bytes, a list of bytes, or yes or no.
type product struct {
	bytes []byte
	list  [][]byte
	is    bool
	kind  productKind
	err   error
}

type productKind int

const (
	productBytes productKind = iota
	productList
	productBool
)

func someBytes(b []byte, err error) product { return product{bytes: b, err: err} }

func yesOrNo(is bool, err error) product { return product{is: is, kind: productBool, err: err} }

func severalBytes(err error, list ...[]byte) product {
	return product{list: list, kind: productList, err: err}
}

// answer encodes the product for JavaScript. An error is a string: nothing else is one.
func (p product) answer() []byte {
	switch {
	case p.err != nil:
		return v8x.AnswerString(ofWork(p.err))
	case p.kind == productList:
		return v8x.AnswerList(p.list...)
	case p.kind == productBool:
		return v8x.AnswerBool(p.is)
	}
	return v8x.AnswerBytes(p.bytes)
}

// deliver adds the product to a call of the entry function, and gives the body to go with it.
func (p product) deliver(call *v8x.Call) (body []byte) {
	if p.err == nil && p.kind == productBytes {
		call.Body()
		return p.bytes
	}
	call.Raw(p.answer())
	return nil
}

var errSubtle = errors.New("unknown function of crypto.subtle")

// always is a goOn that never ends the work.
func always() error { return nil }

// subtleNow does one function of crypto.subtle while JavaScript waits: its number comes first, its arguments follow.
func subtleNow(q *v8x.Commands) product {
	op := int(q.Int())
	if op <= subtlePBKDF2 {
		return subtleWork(op, q, always)
	}
	// Go's public-key cryptography may keep weak pointers to its arguments, which is fatal when they are not in Go's memory.
	args := q.Detach()
	return subtleWork(op, &args, always)
}

// subtleWork does one function of crypto.subtle. goOn is asked by what may take long whether to go on.
func subtleWork(op int, q *v8x.Commands, goOn func() error) product {
	switch {
	case op <= subtlePBKDF2:
		return subtleSymmetric(op, q, goOn)
	case op <= subtleRSAParts:
		return subtleRSAKeys(op, q)
	case op <= subtleDecryptOAEP:
		return subtleRSA(op, q)
	case op <= subtleECDH:
		return subtleEC(op, q)
	default:
		return subtleOKP(op, q)
	}
}

func subtleSymmetric(op int, q *v8x.Commands, goOn func() error) product {
	switch op {
	case subtleDigest:
		return someBytes(webcrypto.Digest(q.Text(), q.View()))
	case subtleHMAC:
		return someBytes(webcrypto.HMAC(q.Text(), q.View(), q.View()))
	case subtleHMACEqual:
		return yesOrNo(webcrypto.HMACEqual(q.Text(), q.View(), q.View(), q.View()))
	case subtleEncryptCBC:
		return someBytes(webcrypto.EncryptCBC(q.View(), q.View(), q.View()))
	case subtleDecryptCBC:
		return someBytes(webcrypto.DecryptCBC(q.View(), q.View(), q.View()))
	case subtleCTR:
		return someBytes(webcrypto.CTR(q.View(), q.View(), int(q.Int()), q.View()))
	case subtleEncryptGCM:
		return someBytes(webcrypto.EncryptGCM(q.View(), q.View(), q.View(), int(q.Int()), q.View()))
	case subtleDecryptGCM:
		return someBytes(webcrypto.DecryptGCM(q.View(), q.View(), q.View(), int(q.Int()), q.View()))
	case subtleWrapKW:
		return someBytes(webcrypto.WrapKW(q.View(), q.View()))
	case subtleUnwrapKW:
		return someBytes(webcrypto.UnwrapKW(q.View(), q.View()))
	case subtleHKDF:
		return someBytes(webcrypto.HKDF(q.Text(), q.View(), q.View(), q.View(), int(q.Int())))
	case subtlePBKDF2:
		return someBytes(webcrypto.PBKDF2(q.Text(), q.View(), q.View(), int(q.Int()), int(q.Int()), goOn))
	}
	return product{err: errSubtle}
}

// parts of an RSA key for JavaScript: its DER, the length of its modulus in bits as 4 bytes, its public exponent.
func rsaParts(k webcrypto.RSAKey) [][]byte {
	return [][]byte{k.DER, binary.BigEndian.AppendUint32(nil, uint32(k.Bits)), k.Exponent}
}

func oneRSA(k webcrypto.RSAKey, err error) product { return severalBytes(err, rsaParts(k)...) }

func subtleRSAKeys(op int, q *v8x.Commands) product {
	switch op {
	case subtleRSAGenerate:
		private, public, err := webcrypto.GenerateRSA(int(q.Int()), q.View())
		return severalBytes(err, append(rsaParts(private), public.DER)...)
	case subtleRSAImport:
		if q.Text() == "spki" {
			return oneRSA(webcrypto.ImportRSASPKI(q.View()))
		}
		return oneRSA(webcrypto.ImportRSAPKCS8(q.View()))
	case subtleRSAImportParts:
		return oneRSA(webcrypto.ImportRSAParts(webcrypto.RSAParts{
			N: q.View(), E: q.View(), D: q.View(), P: q.View(), Q: q.View(), DP: q.View(), DQ: q.View(), QI: q.View(),
		}))
	case subtleRSAExport:
		if q.Text() == "spki" {
			return someBytes(webcrypto.ExportRSASPKI(q.View()))
		}
		return someBytes(webcrypto.ExportRSAPKCS8(q.View()))
	case subtleRSAParts:
		p, err := webcrypto.ExportRSAParts(q.View(), q.Bool())
		return severalBytes(err, p.N, p.E, p.D, p.P, p.Q, p.DP, p.DQ, p.QI)
	}
	return product{err: errSubtle}
}

func subtleRSA(op int, q *v8x.Commands) product {
	switch op {
	case subtleSignPKCS1:
		return someBytes(webcrypto.SignPKCS1(q.Text(), q.View(), q.View()))
	case subtleVerifyPKCS1:
		return yesOrNo(webcrypto.VerifyPKCS1(q.Text(), q.View(), q.View(), q.View()))
	case subtleSignPSS:
		return someBytes(webcrypto.SignPSS(q.Text(), q.View(), int(q.Int()), q.View()))
	case subtleVerifyPSS:
		return yesOrNo(webcrypto.VerifyPSS(q.Text(), q.View(), int(q.Int()), q.View(), q.View()))
	case subtleEncryptOAEP:
		return someBytes(webcrypto.EncryptOAEP(q.Text(), q.View(), q.View(), q.View()))
	case subtleDecryptOAEP:
		return someBytes(webcrypto.DecryptOAEP(q.Text(), q.View(), q.View(), q.View()))
	}
	return product{err: errSubtle}
}

func subtleEC(op int, q *v8x.Commands) product {
	switch op {
	case subtleECGenerate:
		private, public, err := webcrypto.GenerateEC(q.Text())
		return severalBytes(err, private, public)
	case subtleECImportPoint:
		return someBytes(webcrypto.ImportECPoint(q.Text(), q.View()))
	case subtleECImportScalar:
		return someBytes(webcrypto.ImportECScalar(q.Text(), q.View(), q.View()))
	case subtleECImport:
		if q.Text() == "spki" {
			return someBytes(webcrypto.ImportECSPKI(q.Text(), q.View()))
		}
		return someBytes(webcrypto.ImportECPKCS8(q.Text(), q.View()))
	case subtleECExport:
		if q.Text() == "spki" {
			return someBytes(webcrypto.ExportECSPKI(q.Text(), q.View()))
		}
		return someBytes(webcrypto.ExportECPKCS8(q.Text(), q.View()))
	case subtleSignECDSA:
		return someBytes(webcrypto.SignECDSA(q.Text(), q.Text(), q.View(), q.View()))
	case subtleVerifyECDSA:
		return yesOrNo(webcrypto.VerifyECDSA(q.Text(), q.Text(), q.View(), q.View(), q.View()))
	case subtleECDH:
		return someBytes(webcrypto.ECDH(q.Text(), q.View(), q.View()))
	}
	return product{err: errSubtle}
}

func subtleOKP(op int, q *v8x.Commands) product {
	switch op {
	case subtleOKPGenerate:
		private, public, err := webcrypto.GenerateOKP(q.Text())
		return severalBytes(err, private, public)
	case subtleOKPImportSeed:
		return someBytes(webcrypto.ImportOKPSeed(q.Text(), q.View(), q.View()))
	case subtleOKPImport:
		if q.Text() == "spki" {
			return someBytes(webcrypto.ImportOKPSPKI(q.Text(), q.View()))
		}
		return someBytes(webcrypto.ImportOKPPKCS8(q.Text(), q.View()))
	case subtleOKPExport:
		if q.Text() == "spki" {
			return someBytes(webcrypto.ExportOKPSPKI(q.Text(), q.View()))
		}
		return someBytes(webcrypto.ExportOKPPKCS8(q.Text(), q.View()))
	case subtleSignEd25519:
		return someBytes(webcrypto.SignEd25519(q.View(), q.View()))
	case subtleVerifyEd25519:
		return yesOrNo(webcrypto.VerifyEd25519(q.View(), q.View(), q.View()))
	case subtleX25519:
		return someBytes(webcrypto.X25519(q.View(), q.View()))
	case subtleSignEd448:
		return someBytes(webcrypto.SignEd448(q.View(), q.View(), q.View()))
	case subtleVerifyEd448:
		return yesOrNo(webcrypto.VerifyEd448(q.View(), q.View(), q.View(), q.View()))
	case subtleX448:
		return someBytes(webcrypto.X448(q.View(), q.View()))
	}
	return product{err: errSubtle}
}
