package nodecrypto

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key of each kind is written and read in each of its forms, and does what keys of its kind do.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, curve string
		forms       []string
	}{
		{RSA, "", []string{"pkcs8", "pkcs1"}}, {EC, "P-256", []string{"pkcs8", "sec1"}},
		{EC, "secp384r1", []string{"pkcs8", "sec1"}},
		{EC, "P-521", []string{"pkcs8", "sec1"}}, {Ed25519, "", []string{"pkcs8"}}, {X25519, "", []string{"pkcs8"}},
	} {
		k, err := GenerateKey(c.kind, 1024, c.curve)
		require.NoError(t, err)
		require.Equal(t, c.kind, k.Kind)
		for _, form := range c.forms {
			der, err := WriteKey(k.Private, true, form)
			require.NoError(t, err)
			again, err := ReadKey(der, false, form, true)
			require.NoError(t, err)
			require.Equal(t, k, again)
		}
		public, err := ReadKey(PEM("PUBLIC KEY", k.Public), true, "", false)
		require.NoError(t, err)
		require.Equal(t, k.Public, public.Public)
		require.Nil(t, public.Private)
		_, err = ReadKey(k.Public, false, "spki", true)
		require.ErrorIs(t, err, errPrivate)
		_, err = WriteKey(k.Private, true, "nope")
		require.Error(t, err)
		parts, err := Parts(k.Private, true)
		require.NoError(t, err)
		again, err := FromParts(k.Kind, k.Curve, true, parts)
		require.NoError(t, err)
		require.Equal(t, k.Public, again.Public)
		signs(t, k)
	}
}

func signs(t *testing.T, k Key) {
	t.Helper()
	if k.Kind == X25519 {
		secret, err := Agree(k.Private, k.Public)
		require.NoError(t, err)
		require.Len(t, secret, 32)
		return
	}
	digest := sha256.Sum256([]byte("data"))
	for _, o := range []SignOptions{{Hash: "sha256"}, {Hash: "sha256", Padding: paddingPSS, Salt: -1, Plain: true}} {
		signature, err := Sign(k.Private, digest[:], o)
		require.NoError(t, err)
		is, err := Verify(k.Public, digest[:], signature, o)
		require.NoError(t, err)
		require.True(t, is)
		signature[len(signature)-1] ^= 1
		is, err = Verify(k.Public, digest[:], signature, o)
		require.NoError(t, err)
		require.False(t, is)
	}
}

// Keys are bounded before they are checked, which takes long for long ones.
func TestBoundsOfKeys(t *testing.T) {
	t.Parallel()
	_, err := GenerateKey(RSA, MaxRSAGenerated+1, "")
	require.Error(t, err)
	_, err = GenerateKey(EC, 0, "secp256k1")
	require.ErrorIs(t, err, errCurve)
	_, err = ReadKey(make([]byte, MaxKey+1), false, "spki", false)
	require.ErrorContains(t, err, "at most")
	_, err = ReadKey(PEM("PRIVATE KEY", bytes.Repeat([]byte{0x30, 0x82}, maxPrivate)), true, "", true)
	require.ErrorIs(t, err, errKey)
	_, err = ReadKey(PEM("ENCRYPTED PRIVATE KEY", []byte{1}), true, "", true)
	require.ErrorIs(t, err, errEncrypted)
	for _, kind := range []string{RSA, EC, Ed25519, X25519, "nope"} {
		for _, private := range []bool{true, false} {
			_, err := FromParts(kind, "P-256", private, make([][]byte, 8))
			require.Error(t, err, kind)
		}
	}
	_, err = FromParts(RSA, "", false, [][]byte{make([]byte, MaxRSABits), {3}})
	require.Error(t, err)
}

// Texts of keys come from the worker's code.
func FuzzReadKey(f *testing.F) {
	for _, kind := range []string{RSA, EC, Ed25519, X25519} {
		k, err := GenerateKey(kind, 1024, "P-256")
		require.NoError(f, err)
		f.Add(k.Private, false, "pkcs8", true)
		f.Add(PEM("PUBLIC KEY", k.Public), true, "", false)
	}
	f.Fuzz(func(t *testing.T, data []byte, isPEM bool, kind string, private bool) {
		k, err := ReadKey(data, isPEM, kind, private)
		if err != nil {
			return
		}
		again, err := ReadKey(k.Public, false, "spki", false)
		if err != nil || !bytes.Equal(again.Public, k.Public) {
			t.Fatalf("the public key of %x is not read again: %v", data, err)
		}
	})
}

// OpenSSL writes the parameters of a curve before the key.
func TestParametersBeforeAKey(t *testing.T) {
	t.Parallel()
	k, err := GenerateKey(EC, 0, "P-256")
	require.NoError(t, err)
	der, err := WriteKey(k.Private, true, "sec1")
	require.NoError(t, err)
	parameters := PEM("EC PARAMETERS", []byte{0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07})
	again, err := ReadKey(append(bytes.Clone(parameters), PEM("EC PRIVATE KEY", der)...), true, "", true)
	require.NoError(t, err)
	require.Equal(t, k, again)
	_, err = ReadKey(bytes.Repeat(parameters, 3), true, "", true)
	require.ErrorIs(t, err, errKey)
}
