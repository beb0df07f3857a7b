package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ACME needs an address and a key, and no certificate of files. What does not go together is named.
func TestACMESettings(t *testing.T) {
	file := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	load := func(values ...string) (Config, error) {
		clean(t)
		for _, v := range append([]string{"HTTP_ADDR=:443", "SECRETS_KEY=" + file}, values...) {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv("PINWHEEL_"+name, value)
		}
		return Load()
	}
	c, err := load("HTTP_ACME=letsencrypt", "HTTP_ACME_EMAIL=ops@fleet.example", "HTTP_ACME_CA="+file,
		"HTTP_ACME_OWNER_HOSTS=7")
	require.NoError(t, err)
	require.Equal(t, []any{"https://acme-v02.api.letsencrypt.org/directory", "ops@fleet.example", file, 7},
		[]any{c.ACMEDirectory(), c.HTTPAcmeEmail, c.HTTPAcmeCA, c.HTTPAcmeOwnerHosts})
	for _, entry := range environ(c) {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	again, err := Load()
	require.NoError(t, err)
	require.Equal(t, c, again)
	c, err = load("HTTP_ACME=https://ca.fleet.example:9000/acme/acme/directory")
	require.NoError(t, err)
	require.Equal(t, c.HTTPAcme, c.ACMEDirectory())
	require.NoError(t, c.CheckACMEKey())
	c, err = load("HTTP_ACME=letsencrypt", "SECRETS_KEY=")
	require.NoError(t, err, "commands have no key")
	require.ErrorContains(t, c.CheckACMEKey(), "(PINWHEEL_SECRETS_KEY is empty: keys of certificates are not stored without encryption)")

	const allowed = `: it is letsencrypt, letsencrypt-staging or an https URL, beside PINWHEEL_HTTP_ADDR and PINWHEEL_SECRETS_KEY, and only when PINWHEEL_HTTP_CERT is empty; or empty`
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"HTTP_ACME=http://ca.example/dir"}, `PINWHEEL_HTTP_ACME is "http://ca.example/dir"` + allowed +
			" (that is no directory)"},
		{[]string{"HTTP_ACME=on"}, `PINWHEEL_HTTP_ACME is "on"` + allowed + " (that is no directory)"},
		{[]string{"HTTP_ACME=letsencrypt", "HTTP_ADDR="}, "(PINWHEEL_HTTP_ADDR is empty: no certificate is needed)"},
		{[]string{"HTTP_ACME=letsencrypt", "HTTP_CERT=" + file, "HTTP_KEY=" + file},
			"(PINWHEEL_HTTP_CERT or PINWHEEL_HTTP_KEY is set too: certificates come from files or by ACME)"},
		{[]string{"HTTP_ACME_EMAIL=ops@fleet.example"}, `PINWHEEL_HTTP_ACME_EMAIL is "ops@fleet.example": it is an email address, beside PINWHEEL_HTTP_ACME; or empty`},
		{[]string{"HTTP_ACME=letsencrypt", "HTTP_ACME_EMAIL=ops"}, `PINWHEEL_HTTP_ACME_EMAIL is "ops"`},
		{[]string{"HTTP_ACME=letsencrypt", "HTTP_ACME_EMAIL=Ops <ops@fleet.example>"}, `PINWHEEL_HTTP_ACME_EMAIL is`},
		{[]string{"HTTP_ACME_CA=" + file}, `it is the path of a readable file, beside PINWHEEL_HTTP_ACME; or empty`},
		{[]string{"HTTP_ACME=letsencrypt", "HTTP_ACME_CA=/no/such/file"}, `PINWHEEL_HTTP_ACME_CA is "/no/such/file"`},
		{[]string{"HTTP_ACME_OWNER_HOSTS=101"}, `PINWHEEL_HTTP_ACME_OWNER_HOSTS is "101": it is 1 to 100`},
	} {
		_, err := load(c.values...)
		require.ErrorContains(t, err, c.want, c.values)
	}
}
