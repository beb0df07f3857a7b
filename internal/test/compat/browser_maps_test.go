package compat_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

func testBrowserMaps(t *testing.T, f *fleet) {
	w := f.deploy(t, "browser-maps.js")
	var got map[string]any
	w.task(t, map[string]any{"base": upstream(t)}, &got)
	block, err := aes.NewCipher([]byte("0123456789abcdef"))
	require.NoError(t, err)
	encrypted := []byte("secret\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a")
	cipher.NewCBCEncrypter(block, []byte("fedcba9876543210")).CryptBlocks(encrypted, encrypted)
	digest := sha256.Sum256([]byte("abc"))
	require.Equal(t, map[string]any{
		"nested": map[string]any{"a": map[string]any{"b": []any{"1", "2"}}}, "clean": "<b>bold</b><a>a</a>",
		"status": 200.0, "client": "axios", "body": `{"a":1}`, "query": map[string]any{"q": []any{"x"}},
		"missing": "AxiosError 404 none",
		"digest":  hex.EncodeToString(digest[:]), "cipher": hex.EncodeToString(encrypted),
	}, got)
}
