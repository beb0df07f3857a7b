package compat_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testJose(t *testing.T, f *fleet) {
	w := f.deploy(t, "jose.ts")
	rsas := []string{rsaKey(t), rsaKey(t)}
	for _, alg := range []string{
		"HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
		"Ed25519",
	} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			var got map[string]any
			w.task(t, map[string]any{"jws": alg, "pems": pemsFor(alg, rsas)}, &got)
			require.Equal(t, map[string]any{
				"sub": "ada", "alg": alg, "same": true, "flat": "bytes",
				"forged": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED", "stranger": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED",
				"cut": "ERR_JWS_SIGNATURE_VERIFICATION_FAILED", "expired": "ERR_JWT_EXPIRED",
				"audience": "ERR_JWT_CLAIM_VALIDATION_FAILED", "algorithm": "ERR_JOSE_ALG_NOT_ALLOWED",
			}, got)
		})
	}
	encs := []string{"A128GCM", "A192GCM", "A256GCM", "A128CBC-HS256", "A192CBC-HS384", "A256CBC-HS512"}
	for i, alg := range []string{
		"dir", "dir", "dir", "dir", "dir", "dir", "A128KW", "A192KW", "A256KW", "A128GCMKW", "A192GCMKW", "A256GCMKW",
		"RSA-OAEP", "RSA-OAEP-256", "RSA-OAEP-384", "RSA-OAEP-512", "ECDH-ES", "ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A192KW",
		"ECDH-ES+A256KW",
		"PBES2-HS256+A128KW", "PBES2-HS384+A192KW", "PBES2-HS512+A256KW",
	} {
		enc := encs[i%len(encs)]
		t.Run(alg+" "+enc, func(t *testing.T) {
			t.Parallel()
			var got map[string]any
			w.task(t, map[string]any{"jwe": alg, "enc": enc, "pems": pemsFor(alg, rsas)}, &got)
			require.Equal(t, map[string]any{"sub": "ada", "parts": 5.0, "forged": "ERR_JWE_DECRYPTION_FAILED"}, got)
		})
	}
	for _, crv := range []string{"P-384", "P-521", "X25519"} {
		var got map[string]any
		w.task(t, map[string]any{"jwe": "ECDH-ES+A256KW", "enc": "A256GCM", "crv": crv}, &got)
		require.Equal(t, map[string]any{"sub": "ada", "parts": 5.0, "forged": "ERR_JWE_DECRYPTION_FAILED"}, got, crv)
	}
	var got map[string]any
	w.task(t, map[string]any{"zip": true}, &got)
	unknown := "NotSupportedError"
	require.Equal(t, map[string]any{"short": true, "text": 10000.0, "bomb": "ERR_JWE_INVALID",
		"lacks": []any{unknown, unknown, unknown}}, got)
	got = nil
	w.task(t, map[string]any{"jwks": true}, &got)
	require.Equal(t, map[string]any{
		"sub": "ada", "unknown": "ERR_JWKS_NO_MATCHING_KEY", "thumbprint": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
	}, got)
	testJoseReadsOthers(t, w)
}

// pemsFor returns the keys for an RSA algorithm, and none for others.
func pemsFor(alg string, rsas []string) []string {
	if strings.HasPrefix(alg, "R") || strings.HasPrefix(alg, "PS") {
		return rsas
	}
	return nil
}

func rsaKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// testJoseReadsOthers lets the package verify a token that Go has signed: by its key, its certificate and a list of
// keys at a URL.
func testJoseReadsOthers(t *testing.T, w *worker) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"n":17}`))
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	require.NoError(t, err)
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	token := text + "." + base64.RawURLEncoding.EncodeToString(signature)

	public, err := key.PublicKey.Bytes() // 4, x, y
	require.NoError(t, err)
	set := fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","x":%q,"y":%q}]}`,
		base64.RawURLEncoding.EncodeToString(public[1:33]), base64.RawURLEncoding.EncodeToString(public[33:]))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, set)
	}))
	defer server.Close()
	var remote map[string]any
	w.task(t, map[string]any{"remote": map[string]any{"token": token, "url": server.URL + "/jwks.json"}}, &remote)
	require.Equal(t, map[string]any{"n": 17.0}, remote)

	spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	for kind, der := range map[string][]byte{"PUBLIC KEY": spki, "CERTIFICATE": cert} {
		var got map[string]any
		text := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		w.task(t, map[string]any{"foreign": map[string]any{"token": token, "pem": text, "alg": "ES256"}}, &got)
		require.Equal(t, map[string]any{"n": 17.0}, got, kind)
	}
}
