package manifest_test

import (
	"strings"
	"testing"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
	"github.com/stretchr/testify/require"
)

// The ten patterns of Buntime, each with its examples, and names that are near them.
func TestVarsThatLookLikeSecrets(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(
		`DATABASE_URL DB_HOST API_KEY AUTH_KEY SECRET_KEY PRIVATE_KEY APIKEY API_KEYS ACCESS_TOKEN REFRESH_TOKEN JWT_SECRET
		APP_SECRET DB_PASSWORD ADMIN_PASSWORD AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY GITHUB_TOKEN GITHUB_SECRET OPENAI_API_KEY ANTHROPIC_API_KEY
		STRIPE_SECRET_KEY api_key Db_host`) {
		require.True(t, manifest.LooksSecret(name), name)
		vars := map[string]string{name: "s3cret", "FINE": "1"}
		err := manifest.CheckPlain(vars, []string{"OTHER"})
		require.ErrorContains(t, err, "vars."+name+" looks like a secret")
		require.NotContains(t, err.Error(), "s3cret")
		require.NoError(t, manifest.CheckPlain(vars, []string{name}))
	}
	for _, name := range strings.Fields(`GREETING TOKENS TOKEN SECRET PASSWORD MY_API_KEY ADB_HOST DBHOST KEY PUBLIC_KEY_URL STRIPES URL`) {
		require.False(t, manifest.LooksSecret(name), name)
	}
}

func TestManifestsNameSecrets(t *testing.T) {
	t.Parallel()
	m := parse(t, manifest.JSON, `{"secrets": ["A_KEY"], "vars": {"DB_HOST": "h"}, "plain": ["DB_HOST"]}`)
	require.Equal(t, []string{"A_KEY"}, m.Secrets)
	require.NoError(t, m.Check(m.Spec))
	m = parse(t, manifest.WranglerJSON, `{"name": "w", "secrets": {"required": ["B_KEY"]}}`)
	require.Equal(t, []string{"B_KEY"}, m.Secrets)
	for text, want := range map[string]string{
		`{"name": "w", "vars": {"DB_HOST": "x", "A": {"X_TOKEN": 1, "b": [{"API_KEY": 2}]}, "AWS_ID": "y", "OK": "z"}}`: `m:1:84: vars.AWS_ID looks like a secret, and so do vars.DB_HOST, vars.A (its key "X_TOKEN"), ` +
			`vars.A (its key "API_KEY"): make them secrets ("secrets": ["AWS_ID", "DB_HOST", "X_TOKEN", "API_KEY"], and`,
		`{"name": "w", "vars": {"API_KEY": "x"}}`:           `m:1:24: vars.API_KEY looks like a secret: make it one`,
		`{"name": "w", "secrets": {"required": ["1"]}}`:     `m:1:40: secrets[0] 1 is no name in env`,
		`{"name": "w", "secrets": {"optional": ["A_KEY"]}}`: `m:1:27: unknown key "secrets.optional": secrets may have required`,
	} {
		m, err := manifest.Parse(manifest.WranglerJSON, "m", []byte(text), nil)
		if err == nil {
			err = m.Check(m.Spec)
		}
		require.ErrorContains(t, err, want, text)
	}
	lookup := func(string) (string, error) { return "value", nil }
	_, err := manifest.Parse(manifest.JSON, "m", []byte(`{"vars": {"GREETING": "${MY_TOKEN}"}}`), lookup)
	require.ErrorContains(t, err, `m:1:11: vars.GREETING wants ${MY_TOKEN}, which looks like a secret: make it one`)
	m, err = manifest.Parse(manifest.JSON, "m", []byte(`{"vars": {"GREETING": "${MY_TOKEN}"}, "plain": ["MY_TOKEN"]}`), lookup)
	require.NoError(t, err)
	require.Equal(t, "value", m.Vars["GREETING"])
}
