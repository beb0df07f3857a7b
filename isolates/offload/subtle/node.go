package subtle

import (
	"encoding/binary"

	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/offload/nodecrypto"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// node carries out a function of node:crypto.
func node(op int, q *v8x.Commands, goOn func() error) offload.Product {
	switch op {
	case opHashUpdate:
		return offload.Bytes(nodecrypto.HashUpdate(q.Text(), q.View(), q.View()))
	case opHashEnd:
		return offload.Bytes(nodecrypto.HashEnd(q.Text(), q.View(), q.View(), int(q.Int())))
	case opHMACUpdate:
		return offload.Bytes(nodecrypto.HMACUpdate(q.Text(), q.View(), q.View(), q.View()))
	case opHMACEnd:
		return offload.Bytes(nodecrypto.HMACEnd(q.Text(), q.View(), q.View(), q.View()))
	case opPBKDF2Step:
		return offload.Bytes(nodecrypto.PBKDF2Step(q.Text(), q.View(), q.View(), q.View(), uint32(q.Int()), int(q.Int())))
	case opNodePBKDF2:
		return offload.Bytes(nodecrypto.PBKDF2(q.Text(), q.View(), q.View(), int(q.Int()), int(q.Int()), goOn))
	case opNodeHKDF:
		return offload.Bytes(nodecrypto.HKDF(q.Text(), q.View(), q.View(), q.View(), int(q.Int())))
	case opScrypt:
		return offload.Bytes(nodecrypto.Scrypt(q.View(), q.View(), int(q.Int()), int(q.Int()), int(q.Int()), int(q.Int())))
	case opCRC32:
		return offload.Bytes(binary.BigEndian.AppendUint32(nil, nodecrypto.CRC32(uint32(q.Int()), q.View())), nil)
	}
	return offload.Failed(errSubtle)
}

// ciphered carries out a function of the ciphers of node:crypto.
func ciphered(op int, q *v8x.Commands) offload.Product {
	switch op {
	case opBlocks:
		return offload.Bytes(nodecrypto.Blocks(q.Bool(), q.View(), q.View(), q.View()))
	case opCTRFrom:
		return offload.Bytes(nodecrypto.CTR(q.View(), q.View(), uint64(q.Int()), q.View()))
	case opChaCha20:
		return offload.Bytes(nodecrypto.ChaCha20(q.View(), q.View(), uint64(q.Int()), q.View()))
	case opPoly1305:
		return offload.Bytes(nodecrypto.Poly1305(q.View(), q.View(), q.View(), q.View()))
	case opGCMAdditional:
		return offload.Bytes(nodecrypto.GCMAdditional(q.View(), q.View(), q.View(), q.View()))
	case opGCMUpdate:
		out, next, err := nodecrypto.GCMUpdate(q.Bool(), q.View(), q.View(), q.View(), q.View())
		return offload.List(err, out, next)
	case opGCMTag:
		return offload.Bytes(nodecrypto.GCMTag(q.View(), q.View(), q.View()))
	}
	return offload.Failed(errSubtle)
}

// keyParts are a key for JavaScript: its DER, the public key's, its kind, its curve, its length in bits as 4 bytes, and
// its public exponent.
func keyParts(k nodecrypto.Key, err error) offload.Product {
	return offload.List(err, k.Private, k.Public, []byte(k.Kind), []byte(k.Curve),
		binary.BigEndian.AppendUint32(nil, uint32(k.Bits)), k.E)
}

// keyed carries out a function of the keys of node:crypto.
func keyed(op int, q *v8x.Commands) offload.Product {
	switch op {
	case opKeyRead:
		return keyParts(nodecrypto.ReadKey(q.View(), q.Bool(), q.Text(), q.Bool()))
	case opKeyWrite:
		der, err := nodecrypto.WriteKey(q.View(), q.Bool(), q.Text())
		if label := q.Text(); label != "" && err == nil {
			der = nodecrypto.PEM(label, der)
		}
		return offload.Bytes(der, err)
	case opKeyGenerate:
		return keyParts(nodecrypto.GenerateKey(q.Text(), int(q.Int()), q.Text()))
	case opKeyParts:
		parts, err := nodecrypto.Parts(q.View(), q.Bool())
		return offload.List(err, parts...)
	case opKeyFromParts:
		kind, curve, private := q.Text(), q.Text(), q.Bool()
		var parts [8][]byte
		for i := range parts {
			parts[i] = q.View()
		}
		return keyParts(nodecrypto.FromParts(kind, curve, private, parts[:]))
	case opKeySign:
		return offload.Bytes(nodecrypto.Sign(q.View(), q.View(), signOptions(q)))
	case opKeyVerify:
		return offload.Bool(nodecrypto.Verify(q.View(), q.View(), q.View(), signOptions(q)))
	case opKeyEncrypt:
		return offload.Bytes(nodecrypto.Encrypt(q.View(), int(q.Int()), q.Text(), q.View(), q.View()))
	case opKeyDecrypt:
		return offload.Bytes(nodecrypto.Decrypt(q.View(), int(q.Int()), q.Text(), q.View(), q.View()))
	case opKeyAgree:
		return offload.Bytes(nodecrypto.Agree(q.View(), q.View()))
	}
	return offload.Failed(errSubtle)
}

func signOptions(q *v8x.Commands) nodecrypto.SignOptions {
	return nodecrypto.SignOptions{Hash: q.Text(), Padding: int(q.Int()), Salt: int(q.Int()), Plain: q.Bool()}
}
