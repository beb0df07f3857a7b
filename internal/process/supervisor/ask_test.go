package supervisor

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// answers is a process that answers each request by a function.
func answers(f http.HandlerFunc) *process {
	return &process{client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		f(w, r)
		return w.Result(), nil
	})}}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A process may be replaced between the moment when it is chosen and its answer: then the next one is asked.
func TestTheNextProcessAnswersForOneThatEnds(t *testing.T) {
	t.Parallel()
	c := &child{}
	next := answers(func(http.ResponseWriter, *http.Request) {})
	c.current.Store(answers(func(w http.ResponseWriter, _ *http.Request) {
		c.current.Store(next)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	require.Equal(t, http.StatusOK, c.ask(t.Context(), "/readyz", "").Status)

	c.current.Store(answers(func(w http.ResponseWriter, _ *http.Request) {
		c.current.Store(nil)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	require.Equal(t, http.StatusServiceUnavailable, c.ask(t.Context(), "/readyz", "").Status)
	require.Error(t, c.ask(t.Context(), "/readyz", "").Err)
}
