package webcrypto_test

import (
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha512"
	"errors"
	"hash"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/offload/webcrypto"
)

func TestPBKDF2IsThatOfTheStandardLibrary(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	goOn := func() error { return nil }
	for range 50 {
		password, salt := make([]byte, r.IntN(200)), make([]byte, r.IntN(50))
		iterations, n := 1+r.IntN(5000), 1+r.IntN(150)
		for name, h := range map[string]func() hash.Hash{"SHA-1": sha1.New, "SHA-384": sha512.New384} {
			want, err := pbkdf2.Key(h, string(password), salt, iterations, n)
			require.NoError(t, err)
			got, err := webcrypto.PBKDF2(name, password, salt, iterations, n, goOn)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

func TestPBKDF2EndsWhenItIsTold(t *testing.T) {
	enough := errors.New("enough")
	asked := 0
	_, err := webcrypto.PBKDF2("SHA-256", nil, nil, webcrypto.MaxIterations, 32, func() error {
		if asked++; asked == 3 {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
}

func TestTooMuchWorkIsRefused(t *testing.T) {
	never := func() error { t.Fatal("it works"); return nil }
	for _, c := range []struct{ iterations, n int }{{webcrypto.MaxIterations + 1, 1}, {webcrypto.MaxIterations, 33},
		{1, webcrypto.MaxDerived + 1}, {1<<32 - 1, 1 << 29}, {0, 1}} {
		_, err := webcrypto.PBKDF2("SHA-256", nil, nil, c.iterations, c.n, never)
		require.Error(t, err, "%+v", c)
	}
	for _, bits := range []int{-1, 0, 1023, webcrypto.MaxRSAGenerated + 1, 1 << 31} {
		_, _, err := webcrypto.GenerateRSA(bits, []byte{1, 0, 1})
		require.Error(t, err, bits)
	}
	huge := make([]byte, webcrypto.MaxRSABits/8+2)
	huge[0] = 1
	_, err := webcrypto.ImportRSAParts(webcrypto.RSAParts{N: huge, E: []byte{1, 0, 1}})
	require.ErrorContains(t, err, "too long")
	huge = huge[:webcrypto.MaxRSABits/8+1]
	huge[len(huge)-1] = 1
	_, err = webcrypto.ImportRSAParts(webcrypto.RSAParts{N: huge, E: []byte{1, 0, 1}})
	require.ErrorContains(t, err, "at most")
	_, err = webcrypto.ImportRSAPKCS8(make([]byte, 1<<20))
	require.ErrorContains(t, err, "too long")
}

func TestErrorsSayWhatIsAllowed(t *testing.T) {
	for want, err := range map[string]error{
		"SHA-1, SHA-256":        second(webcrypto.Digest("MD4", nil)),
		"P-256, P-384 or P-521": second(webcrypto.ImportECPoint("P-224", nil)),
		"it must have 16":       second(webcrypto.EncryptCBC(make([]byte, 16), nil, nil)),
		"32, 64, 96":            second(webcrypto.EncryptGCM(make([]byte, 16), make([]byte, 12), nil, 8, nil)),
		"multiples of 8":        second(webcrypto.WrapKW(make([]byte, 16), make([]byte, 20))),
		"at most 8160":          second(webcrypto.HKDF("SHA-256", nil, nil, nil, 8161)),
	} {
		require.ErrorContains(t, err, want)
	}
}

// A digest is the same however its data is cut, and its state stays small.
func TestDigestInSteps(t *testing.T) {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	for _, name := range []string{"MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512"} {
		want, err := webcrypto.Digest(name, data)
		require.NoError(t, err)
		for _, step := range []int{1, 63, 64, 129, 1000} {
			var state []byte
			for at := 0; at < len(data); at += step {
				state, err = webcrypto.DigestUpdate(name, state, data[at:min(at+step, len(data))])
				require.NoError(t, err)
				require.Less(t, len(state), 256)
			}
			have, err := webcrypto.DigestEnd(name, state)
			require.NoError(t, err)
			require.Equal(t, want, have, "%s by %d", name, step)
		}
		_, err = webcrypto.DigestUpdate(name, []byte("nonsense"), nil)
		require.Error(t, err)
		_, err = webcrypto.DigestEnd(name, []byte("nonsense"))
		require.Error(t, err)
	}
	_, err := webcrypto.DigestUpdate("SHA3-256", nil, nil)
	require.Error(t, err)
}

func second(_ []byte, err error) error { return err }

// BenchmarkOperations measures the cost of operations. It decides whether JavaScript waits for one (js/crypto/work.js).
func BenchmarkOperations(b *testing.B) {
	data := make([]byte, 1<<16)
	key := make([]byte, 32)
	bench := func(name string, n int64, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(n)
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, h := range []string{"SHA-1", "SHA-256", "SHA-512"} {
		bench(h+"/64K", 1<<16, func() error { return second(webcrypto.Digest(h, data)) })
	}
	bench("GCM/64K", 1<<16, func() error { return second(webcrypto.EncryptGCM(key, key[:12], nil, 128, data)) })
	bench("CBC/64K", 1<<16, func() error { return second(webcrypto.EncryptCBC(key, key[:16], data)) })
	bench("PBKDF2/1000", 0, func() error {
		return second(webcrypto.PBKDF2("SHA-256", key, key, 1000, 32, func() error { return nil }))
	})
	for _, bits := range []int{2048, 4096} {
		private, public, err := webcrypto.GenerateRSA(bits, []byte{1, 0, 1})
		require.NoError(b, err)
		name := map[int]string{2048: "RSA2048/", 4096: "RSA4096/"}[bits]
		der := mustBytes(webcrypto.ExportRSAPKCS8(private.DER))
		signature := mustBytes(webcrypto.SignPKCS1("SHA-256", private.DER, nil))
		bench(name+"import", 0, func() error { _, err := webcrypto.ImportRSAPKCS8(der); return err })
		bench(name+"sign", 0, func() error { return second(webcrypto.SignPKCS1("SHA-256", private.DER, nil)) })
		bench(name+"sign-unsalted", 0, func() error { return second(webcrypto.SignPSS("SHA-256", private.DER, 0, nil)) })
		bench(name+"verify", 0, func() error {
			_, err := webcrypto.VerifyPKCS1("SHA-256", public.DER, signature, nil)
			return err
		})
		bench(name+"encrypt", 0, func() error { return second(webcrypto.EncryptOAEP("SHA-256", public.DER, nil, key)) })
	}
	for _, curve := range curves {
		private, public, err := webcrypto.GenerateEC(curve)
		require.NoError(b, err)
		signature := mustBytes(webcrypto.SignECDSA(curve, "SHA-256", private, nil))
		der := mustBytes(webcrypto.ExportECPKCS8(curve, private))
		bench(curve+"/import", 0, func() error { return second(webcrypto.ImportECPKCS8(curve, der)) })
		bench(curve+"/sign", 0, func() error { return second(webcrypto.SignECDSA(curve, "SHA-256", private, nil)) })
		bench(curve+"/verify", 0, func() error {
			_, err := webcrypto.VerifyECDSA(curve, "SHA-256", public, signature, nil)
			return err
		})
		bench(curve+"/ecdh", 0, func() error { return second(webcrypto.ECDH(curve, private, public)) })
	}
	private, public, err := webcrypto.GenerateOKP("Ed25519")
	require.NoError(b, err)
	signature := mustBytes(webcrypto.SignEd25519(private, nil))
	bench("Ed25519/sign", 0, func() error { return second(webcrypto.SignEd25519(private, nil)) })
	bench("Ed25519/verify", 0, func() error { _, err := webcrypto.VerifyEd25519(public, signature, nil); return err })
}

func TestHKDFHashesABoundedInfo(t *testing.T) {
	t.Parallel()
	_, err := webcrypto.HKDF("SHA-256", nil, nil, make([]byte, 4<<20), 255*32)
	require.ErrorContains(t, err, "info")
	_, err = webcrypto.HKDF("SHA-256", nil, nil, make([]byte, 4<<20), 32)
	require.NoError(t, err)
}
