package console

import (
	"net/http"
	"net/url"
)

// inputs are what a request says: in its path, its query and its form.
type inputs struct{ http *http.Request }

func (in inputs) path(name string) string { return in.http.PathValue(name) }

func (in inputs) query() url.Values { return in.http.URL.Query() }

// arg is a parameter of the URL.
func (in inputs) arg(name string) string { return in.query().Get(name) }

// form is a field of a form.
func (in inputs) form(name string) string { return in.http.PostForm.Get(name) }

// either is a field of a form, or else a parameter of the URL: a form that was refused is shown again.
func (in inputs) either(name string) string {
	if in.http.PostForm.Has(name) {
		return in.form(name)
	}
	return in.arg(name)
}
