package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

//go:embed templates
var templateFiles embed.FS

//go:embed web
var webFiles embed.FS

// views renders pages, and has the files that they name.
type views struct {
	templates *template.Template
	assets    map[string]*asset // by name with hash
	urls      map[string]string // by name
}

// asset is a file that pages name by its hash: a browser keeps it.
type asset struct {
	kind         string
	plain, small []byte // small is compressed
}

// openViews bundles the script and the style, and reads the templates.
func openViews(traceURL string) (*views, error) {
	v := &views{assets: map[string]*asset{}, urls: map[string]string{}}
	for _, name := range []string{"main.ts", "style.css", "icon.svg"} {
		if err := v.bundle(name); err != nil {
			return nil, err
		}
	}
	var err error
	v.templates, err = template.New("").Funcs(functions(v.url, traceURL)).ParseFS(templateFiles, "templates/*.html")
	return v, err
}

// bundle makes an asset of a source.
func (v *views) bundle(name string) error {
	source, err := fs.ReadFile(webFiles, "web/"+name)
	if err != nil {
		return err
	}
	file := name
	if kind := path.Ext(name); kind != ".svg" {
		loader := api.LoaderCSS
		if kind == ".ts" {
			loader, file = api.LoaderTS, strings.TrimSuffix(name, ".ts")+".js"
		}
		out := api.Transform(string(source), api.TransformOptions{
			Loader: loader, Sourcefile: name, Target: api.ES2022, MinifyWhitespace: true, MinifySyntax: true,
			Charset: api.CharsetUTF8,
		})
		if len(out.Errors) > 0 {
			return fmt.Errorf("console: %s: %s", name, out.Errors[0].Text)
		}
		source = out.Code
	}
	sum := sha256.Sum256(source)
	at := strings.TrimSuffix(file, path.Ext(file)) + "." + hex.EncodeToString(sum[:6]) + path.Ext(file)
	v.urls[file] = "/assets/" + at
	v.assets[at] = &asset{kind: mime.TypeByExtension(path.Ext(file)), plain: source, small: compressed(source)}
	return nil
}

func compressed(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(data)                                  // memory does not fail
	_ = w.Close()
	return b.Bytes()
}

// url is where an asset is.
func (v *views) url(name string) (string, error) {
	if u := v.urls[name]; u != "" {
		return u, nil
	}
	return "", fmt.Errorf("there is no asset %q", name)
}

func (v *views) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := v.assets[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.small
	}
	_, _ = w.Write(body)
}

// render makes the text of a template.
func (v *views) render(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := v.templates.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

// shell is the data of the layout of all pages.
type shell struct {
	session
	Title, Place string
	Open         bool // there is no login
	Notice       string
	Wrong        string        // why the form or the filter of the page was refused
	Body         template.HTML // a template has made it
}

// show answers with a page. It is rendered before the answer begins, so that an error is not in the middle of it.
func (c *call) show(code int, p *page) {
	body, err := c.views.render(p.view, view{c.session, p.data, p.wrong})
	//nolint:gosec // a template has made it
	s := shell{session: c.session, Title: p.title, Place: p.place, Open: c.cfg.Open, Wrong: p.wrong,
		Notice: c.sessions.takeNotice(c.w, c.http, c.Role), Body: template.HTML(body)}
	if err == nil {
		body, err = c.views.render("layout", s)
	}
	if err != nil {
		c.cfg.Log.Error().Err(err).Str("page", p.view).Msg("a page of the console cannot be rendered")
		http.Error(c.w, "this page cannot be rendered: see the log", http.StatusInternalServerError)
		return
	}
	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	c.w.WriteHeader(code)
	_, _ = c.w.Write(body)
}

// view is the data of a template: who looks, and what there is.
type view struct {
	session
	Data  any
	Wrong string // why the form or the filter of the page was refused
}
