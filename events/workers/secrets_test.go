package workers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfSecrets(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxSecrets+1)
	for i := range many {
		many[i] = fmt.Sprint("N", i)
	}
	for want, s := range map[string]Spec{
		"secrets[1] 1A is no name in env: it is": {Secrets: []string{"A", "1A"}},
		"secrets[0]  is no name in env":          {Secrets: []string{""}},
		"secrets[2] A stands twice":              {Secrets: []string{"A", "B", "A"}},
		"secrets has 65: at most 64 are allowed": {Secrets: many},
		"secrets[0] A is a var too: a name in env is one thing": {Secrets: []string{"A"},
			Bindings: Bindings{Vars: map[string]string{"A": ""}}},
		"secrets[0] A is a queue too: a name in env is one thing": {Secrets: []string{"A"},
			Bindings: Bindings{Queues: map[string]string{"A": "w"}}},
	} {
		require.ErrorContains(t, s.Validate(), want)
	}
	require.NoError(t, Spec{Secrets: many[:MaxSecrets], Bindings: Bindings{Vars: map[string]string{"A": ""}}}.Validate())
}
