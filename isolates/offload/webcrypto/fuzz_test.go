package webcrypto_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/offload/webcrypto"
)

var curves = []string{"P-256", "P-384", "P-521"}

// FuzzImport reads keys in DER and as points. An accepted key must be exported, and accepted again, unchanged.
func FuzzImport(f *testing.F) {
	private, public, err := webcrypto.GenerateRSA(1024, []byte{1, 0, 1})
	require.NoError(f, err)
	for _, der := range [][]byte{mustBytes(webcrypto.ExportRSAPKCS8(private.DER)),
		mustBytes(webcrypto.ExportRSASPKI(public.DER))} {
		f.Add(der)
	}
	for _, curve := range curves {
		private, public, err := webcrypto.GenerateEC(curve)
		require.NoError(f, err)
		f.Add(public)
		f.Add(mustBytes(webcrypto.ExportECPKCS8(curve, private)))
		f.Add(mustBytes(webcrypto.ExportECSPKI(curve, public)))
	}
	for _, name := range []string{"Ed25519", "X25519", "Ed448", "X448"} {
		private, public, err := webcrypto.GenerateOKP(name)
		require.NoError(f, err)
		f.Add(mustBytes(webcrypto.ExportOKPPKCS8(name, private)))
		f.Add(mustBytes(webcrypto.ExportOKPSPKI(name, public)))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if k, err := webcrypto.ImportRSASPKI(in); err == nil {
			again, err := webcrypto.ImportRSASPKI(must(webcrypto.ExportRSASPKI(k.DER))(t))
			require.NoError(t, err)
			require.Equal(t, k, again)
		}
		if k, err := webcrypto.ImportRSAPKCS8(in); err == nil {
			parts, err := webcrypto.ExportRSAParts(k.DER, true)
			require.NoError(t, err)
			again, err := webcrypto.ImportRSAParts(parts)
			require.NoError(t, err)
			require.Equal(t, k.Bits, again.Bits)
		}
		for _, curve := range curves {
			if k, err := webcrypto.ImportECSPKI(curve, in); err == nil {
				require.Equal(t, k, must(webcrypto.ImportECSPKI(curve, must(webcrypto.ExportECSPKI(curve, k))(t)))(t))
			}
			if k, err := webcrypto.ImportECPKCS8(curve, in); err == nil {
				require.Equal(t, k, must(webcrypto.ImportECPKCS8(curve, must(webcrypto.ExportECPKCS8(curve, k))(t)))(t))
			}
			if k, err := webcrypto.ImportECPoint(curve, in); err == nil {
				require.Equal(t, k, must(webcrypto.ImportECPoint(curve, k))(t))
			}
			_, _ = webcrypto.ImportECScalar(curve, in, nil)
		}
		for _, name := range []string{"Ed25519", "X25519", "Ed448", "X448"} {
			if k, err := webcrypto.ImportOKPSPKI(name, in); err == nil {
				require.Equal(t, k, must(webcrypto.ImportOKPSPKI(name, must(webcrypto.ExportOKPSPKI(name, k))(t)))(t))
			}
			if k, err := webcrypto.ImportOKPPKCS8(name, in); err == nil {
				require.Equal(t, k, must(webcrypto.ImportOKPPKCS8(name, must(webcrypto.ExportOKPPKCS8(name, k))(t)))(t))
			}
			_, _ = webcrypto.ImportOKPSeed(name, in, nil)
		}
	})
}

func mustBytes(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func must(b []byte, err error) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		require.NoError(t, err)
		return b
	}
}

// FuzzCiphers encrypts and decrypts, and decrypts data that was never encrypted.
func FuzzCiphers(f *testing.F) {
	f.Add(make([]byte, 16), make([]byte, 12), []byte("more"), []byte("data"), 128)
	f.Add(make([]byte, 24), make([]byte, 16), []byte{}, bytes.Repeat([]byte{0xff}, 40), 3)
	f.Add(make([]byte, 32), bytes.Repeat([]byte{0xff}, 16), []byte{}, make([]byte, 100), 32)
	f.Fuzz(func(t *testing.T, key, iv, more, data []byte, bits int) {
		if out, err := webcrypto.EncryptGCM(key, iv, more, bits, data); err == nil {
			require.Equal(t, string(data), string(must(webcrypto.DecryptGCM(key, iv, more, bits, out))(t)))
		}
		if out, err := webcrypto.EncryptCBC(key, iv, data); err == nil {
			require.Equal(t, string(data), string(must(webcrypto.DecryptCBC(key, iv, out))(t)))
		}
		if out, err := webcrypto.CTR(key, iv, bits, data); err == nil {
			require.Equal(t, string(data), string(must(webcrypto.CTR(key, iv, bits, out))(t)))
		}
		if out, err := webcrypto.WrapKW(key, data); err == nil {
			require.Equal(t, string(data), string(must(webcrypto.UnwrapKW(key, out))(t)))
		}
		_, _ = webcrypto.DecryptGCM(key, iv, more, bits, data)
		_, _ = webcrypto.DecryptCBC(key, iv, data)
		_, _ = webcrypto.UnwrapKW(key, data)
		for _, hash := range []string{"SHA-1", "SHA-512", string(more)} {
			_, _ = webcrypto.HKDF(hash, key, iv, more, len(data))
			_, _ = webcrypto.PBKDF2(hash, key, iv, len(more), len(data), func() error { return nil })
		}
	})
}

// FuzzVerify verifies signatures and derives secrets with arbitrary bytes as keys.
func FuzzVerify(f *testing.F) {
	_, rsa, err := webcrypto.GenerateRSA(1024, []byte{1, 0, 1})
	require.NoError(f, err)
	_, point, err := webcrypto.GenerateEC("P-256")
	require.NoError(f, err)
	f.Add(rsa.DER, make([]byte, 128), []byte("data"), 0)
	f.Add(point, make([]byte, 64), []byte("data"), 20)
	f.Add(make([]byte, 32), make([]byte, 64), []byte("data"), 32)
	f.Fuzz(func(_ *testing.T, key, signature, data []byte, salt int) {
		_, _ = webcrypto.VerifyPKCS1("SHA-256", key, signature, data)
		_, _ = webcrypto.VerifyPSS("SHA-256", key, max(salt, 0), signature, data)
		_, _ = webcrypto.VerifyPSS("SHA-1", key, 0, signature, data)
		_, _ = webcrypto.EncryptOAEP("SHA-1", key, data, data)
		_, _ = webcrypto.DecryptOAEP("SHA-1", key, data, signature)
		_, _ = webcrypto.SignPSS("SHA-256", key, 0, data)
		_, _ = webcrypto.VerifyEd25519(key, signature, data)
		_, _ = webcrypto.SignEd25519(key, data)
		_, _ = webcrypto.X25519(signature, key)
		_, _ = webcrypto.VerifyEd448(key, signature, data, nil)
		_, _ = webcrypto.SignEd448(key, data, signature)
		_, _ = webcrypto.X448(signature, key)
		for _, curve := range curves {
			_, _ = webcrypto.VerifyECDSA(curve, "SHA-256", key, signature, data)
			_, _ = webcrypto.SignECDSA(curve, "SHA-256", key, data)
			_, _ = webcrypto.ECDH(curve, signature, key)
		}
		_, _ = webcrypto.ImportRSAParts(webcrypto.RSAParts{N: key, E: data, D: signature, P: key, Q: data, DP: data, DQ: data,
			QI: data})
		_, _ = webcrypto.ImportRSAParts(webcrypto.RSAParts{N: key, E: data})
	})
}
