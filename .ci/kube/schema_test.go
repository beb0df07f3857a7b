package kube_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Wrong values are refused before anything is installed, with the value and what is allowed.
func TestWrongValuesAreRefused(t *testing.T) {
	const nats = "connection: {urls: ['nats://nats:4222']}\n"
	for text, want := range map[string][]string{
		// Each value by itself: the schema.
		nats + "replica: 3":                                   {"additional properties 'replica' not allowed"},
		nats + "image: {tags: v1}":                            {"'/image'", "additional properties 'tags' not allowed"},
		nats + "image: {digest: 'sha256:12'}":                 {"'/image/digest'", "does not match pattern"},
		nats + "image: {pullPolicy: always}":                  {"'/image/pullPolicy'", "value must be one of 'Always', 'IfNotPresent', 'Never'"},
		nats + "replicas: two":                                {"'/replicas'", "got string, want integer"},
		nats + "processes: 65":                                {"'/processes'", "maximum: got 65, want 64"},
		nats + "drainSeconds: 30s":                            {"'/drainSeconds'", "got string, want integer"},
		nats + "drainSeconds: 3601":                           {"'/drainSeconds'", "maximum: got 3,601, want 3,600"},
		nats + "env: {PINWHEEL_THREAD: '2'}":                  {"'/env'", "additional properties 'PINWHEEL_THREAD' not allowed"},
		nats + "env: {PINWHEEL_NATS_PASSWORD: secret}":        {"'/env'", "additional properties 'PINWHEEL_NATS_PASSWORD' not allowed"},
		nats + "env: {PINWHEEL_THREADS: 2}":                   {"'/env/PINWHEEL_THREADS'", "got number, want string"},
		"connection: {urls: ['nats:4222']}":                   {"'/connection/urls/0'", "does not match pattern"},
		"connection: {urls: 'nats://nats:4222'}":              {"'/connection/urls'", "got string, want array"},
		nats + "secrets: {name: a, use: [control_token]}":     {"'/secrets/use/0'", "value must be one of", "'control-token'"},
		nats + "secrets: {create: {control-token: short}}":    {"'/secrets/create/control-token'", "does not match pattern"},
		nats + "secrets: {create: {token: 0123456789abcdef}}": {"'/secrets/create'", "additional properties 'token' not allowed"},
		nats + "http: {port: 80}":                             {"'/http/port'", "minimum: got 80, want 1,024"},
		nats + "scaling: {kind: vpa}":                         {"'/scaling/kind'", "value must be one of 'none', 'keda', 'hpa'"},
		nats + "service: {type: ExternalName}":                {"'/service/type'", "value must be one of"},
		nats + "disruption: {maxUnavailable: 0}":              {"'/disruption/maxUnavailable'", "minimum: got 0, want 1"},
		nats + "networkPolicy: {privateRanges: [10.0.0.0]}":   {"'/networkPolicy/privateRanges/0'", "does not match pattern"},
		"connection: {urls: ['nats://n'], copies: 2}":         {"'/connection/copies'", "value must be one of 0, 1, 3, 5"},
		// Values together: the templates.
		"{}":                           {"set connection.urls, or nats.enabled for a NATS of its own"},
		nats + "nats: {enabled: true}": {"connection.urls and nats.enabled exclude each other"},
		nats + "secrets: {name: a, create: {nats-token: b}}":       {"secrets.name and secrets.create exclude each other"},
		nats + "secrets: {use: [age.key]}":                         {"set secrets.name"},
		nats + "secrets: {name: a, use: [nats.creds, nats-token]}": {"nats.creds, nats-token exclude each other"},
		nats + "secrets: {name: a, use: [nats-user]}":              {"nats-user and nats-password go together"},
		nats + "console: {enabled: true}":                          {"console.enabled needs control-token or console-token"},
		nats + "scaling: {kind: keda, min: 5, max: 4}":             {"scaling.min is above scaling.max"},
		nats + "http: {port: 8422}":                                {"http.port, console.port and admin.port are different ports"},
	} {
		_, err := render("prod", values(t, []byte(text)))
		require.Error(t, err, text)
		for _, part := range want {
			require.ErrorContains(t, err, part, text)
		}
	}
	_, err := render("prod", values(t, []byte(nats)))
	require.NoError(t, err)
}
