package workers

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachFieldOfBindingsIsAKind(t *testing.T) {
	t.Parallel()
	var b Bindings
	v := reflect.ValueOf(&b).Elem()
	require.Equal(t, v.NumField(), len(bindingKinds))
	for i, k := range bindingKinds {
		require.Equal(t, string(k.kind)+",omitempty", v.Type().Field(i).Tag.Get("json"))
		require.Equal(t, v.Field(i).Addr().Pointer(), reflect.ValueOf(k.of(&b)).Pointer())
	}
}

func TestBindingsThatAreAddedReplace(t *testing.T) {
	t.Parallel()
	b := Bindings{Vars: map[string]string{"A": "1", "B": "2", "C": "3"}, Queues: map[string]string{"Q": "w"}}
	over := Bindings{Vars: map[string]string{"A": "9", "Q": "text"}, Queues: map[string]string{"B": "other"}}
	require.Equal(t, []Binding{
		{BindingVar, "A", "9"}, {BindingVar, "C", "3"}, {BindingVar, "Q", "text"}, {BindingQueue, "B", "other"},
	}, b.With(over).Env())
	require.Equal(t, Bindings{Vars: map[string]string{"A": "1", "B": "2", "C": "3"}, Queues: map[string]string{"Q": "w"}},
		b, "it does not change")
	require.Zero(t, Bindings{Vars: map[string]string{}}.With(Bindings{}))
	require.Empty(t, Bindings{}.Env())

	v := Bindings{VersionBinding: "V", KV: map[string]string{"K": "space"}}
	require.Equal(t, []Binding{{BindingKV, "K", "space"}, {BindingVersion, "W", ""}},
		v.With(Bindings{VersionBinding: "W"}).Env())
	require.Equal(t, []Binding{{BindingKV, "V", "other"}, {BindingKV, "K", "space"}}[1:],
		v.With(Bindings{Vars: map[string]string{"V": "x"}}).Env()[1:])
	require.ErrorContains(t, Bindings{VersionBinding: "K", KV: v.KV}.Validate(), "kv.K is a version too")
}

func TestVarsThatAreJSON(t *testing.T) {
	t.Parallel()
	require.NoError(t, Bindings{JSON: map[string]string{"A": `[1]`}}.Validate())
	require.ErrorContains(t, Bindings{JSON: map[string]string{"A": `[1`}}.Validate(), "vars.A is no JSON text")
	require.ErrorContains(t, Bindings{JSON: map[string]string{"A": `1`}, Vars: map[string]string{"A": "x"}}.Validate(),
		"vars.A is a var too")
}
