package compat_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func testAuth(t *testing.T, f *fleet) {
	w := f.deploy(t, "auth.ts")
	for path, want := range map[string]string{
		"/api/auth/ok":          `200 {"ok":true}`,
		"/api/auth/get-session": `200 null`,
		"/names":                `200 ["PaymentError","PaymentError","its own",["status"],"at PaymentError.of"]`,
	} {
		require.Equal(t, want, w.get(t, "https://app.example"+path).text(), path)
	}
}
