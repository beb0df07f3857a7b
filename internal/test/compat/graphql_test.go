package compat_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// graphql sends a GraphQL request as clients do.
func (w *worker) graphql(t *testing.T, path, query string, variables any, headers ...string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	require.NoError(t, err)
	return w.fetch(t, "POST", path, string(body), append([]string{"Content-Type", "application/json"}, headers...)...)
}

func testGraphQL(t *testing.T, f *fleet) {
	w := f.deploy(t, "graphql.ts")
	a := w.graphql(t, "/", `query($id: ID!) { book(id: $id) { title author { name books { id } } } none: book(id: "9") { id } }`, map[string]any{"id": "2"})
	require.Equal(t, 200, a.status)
	require.JSONEq(t, `{"data":{"book":{"title":"Sketch","author":{"name":"Ada","books":[{"id":"1"},{"id":"2"}]}},"none":null}}`, a.body)
	a = w.graphql(t, "/", `mutation($b: BookInput!) { addBook(book: $b) { id ...More } } fragment More on Book { __typename author { name } }`,
		map[string]any{"b": map[string]any{"title": "New", "author": "Grace"}})
	require.JSONEq(t, `{"data":{"addBook":{"id":"3","__typename":"Book","author":{"name":"Grace"}}}}`, a.body)
	a = w.graphql(t, "/", `{ broken books(first: 1) { id } }`, nil)
	require.JSONEq(t, `{"data":{"broken":null,"books":[{"id":"1"}]},
		"errors":[{"message":"broken on purpose","path":["broken"],"locations":[{"line":1,"column":3}],"extensions":{"code":"BROKEN"}}]}`, a.body)
	a = w.graphql(t, "/", `{ book { id }`, nil)
	require.Equal(t, 400, a.status)
	require.Contains(t, a.body, `Syntax Error: Expected Name, found <EOF>.`)
	require.Equal(t, `["Cannot query field \"name\" on type \"Book\".","Field \"book\" argument \"id\" of type \"ID!\" is required, but it was not provided."]`,
		w.graphql(t, "/validate", `{ book { name } }`, nil).body)
	a = w.graphql(t, "/", `query($first: Int) { books(first: $first) { id } }`, map[string]any{"first": "many"})
	require.Contains(t, a.body, `Variable \"$first\" got invalid value \"many\"; Int cannot represent non-integer value`)
	require.Contains(t, w.get(t, "/schema").body, "input BookInput {\n  title: String!\n  author: String\n}")
	require.Equal(t, "[0,1,2]", w.get(t, "/count").body)
}

func testYoga(t *testing.T, f *fleet) {
	w := f.deploy(t, "yoga.ts", "--var", "GREETING=hello")
	a := w.graphql(t, "/graphql", `query($n: String) { hello(name: $n) }`, map[string]any{"n": "Ada"}, "Accept",
		"application/json")
	require.Equal(t, `200 {"data":{"hello":"hello Ada"}}`, a.text())
	require.Equal(t, "application/json; charset=utf-8", a.header.Get("Content-Type"))
	require.Equal(t, `200 {"data":{"hello":"hello world"}}`, w.get(t, "/graphql?query=%7Bhello%7D").text())
	require.Equal(t, `200 {"data":{"double":42}}`, w.graphql(t, "/graphql", `mutation { double(n: 21) }`, nil).text())
	a = w.get(t, "/graphql?query=mutation%7Bdouble(n:1)%7D")
	require.Equal(t, 405, a.status)
	a = w.graphql(t, "/graphql", `{ secret }`, nil)
	require.Contains(t, a.body, "Unexpected error.")
	require.NotContains(t, a.body, "nobody's business")
	require.Contains(t, w.graphql(t, "/graphql", `{ nothing }`, nil).body, `Cannot query field \"nothing\" on type \"Query\".`)
	a = w.graphql(t, "/graphql", `subscription { count(to: 2) }`, nil, "Accept", "text/event-stream")
	require.Equal(t, "text/event-stream", a.header.Get("Content-Type"))
	require.Contains(t, a.body, "event: next\ndata: {\"data\":{\"count\":1}}\n\nevent: next\ndata: {\"data\":{\"count\":2}}\n\nevent: complete")
	a = w.get(t, "/graphql", "Accept", "text/html")
	require.Equal(t, 200, a.status)
	require.Contains(t, a.body, "Yoga GraphiQL")
	require.Equal(t, 404, w.get(t, "/other").status)
	require.Equal(t, 204, w.fetch(t, "OPTIONS", "/graphql", "", "Origin", "https://app.example",
		"Access-Control-Request-Method", "POST").status)
}
