package gateway

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events"
)

// Files reads the files of workers. Any goroutine may call its methods.
type Files interface {
	// List returns a list of files. Nobody may change it.
	List(ctx context.Context, owner, hash string) (*assets.List, error)
	// Stored says in which encodings a file is stored.
	Stored(ctx context.Context, owner, hash string) (assets.Stored, error)
	// Part returns a part of a file, from 0. Nobody may change it.
	Part(ctx context.Context, owner, hash string, e assets.Encoding, n int) ([]byte, error)
}

var (
	noFiles  = &refusal{http.StatusServiceUnavailable, "the files of this worker cannot be read"}
	noFile   = &refusal{http.StatusNotFound, "there is no file at this path"}
	noMethod = &refusal{http.StatusMethodNotAllowed, "a file has the methods GET and HEAD"}
)

// answer answers a request with a file of the worker. It reports false if the worker must run.
func (x *exchange) answer() bool {
	w, escaped := x.service.worker, x.path
	a := w.Assets
	if a == nil || a.Files == "" {
		return false
	}
	runs := slices.Contains(w.Handlers, events.Fetch)
	reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	switch {
	case runs && (!reads || x.upgrades || a.First(escaped)):
		return false
	case !reads:
		x.w.Header()["Allow"] = []string{"GET, HEAD"}
		x.refuse(noMethod)
		return true
	}
	x.version = w.Version
	list, err := x.g.Files.List(x.r.Context(), w.Owner, a.Files)
	if err != nil {
		x.unreadable(err)
		return true
	}
	path, err := url.PathUnescape(escaped)
	if err == nil && !events.DotSegment(escaped) && x.found(list, path) {
		return true
	}
	navigates := x.r.Header.Get("Sec-Fetch-Mode") == "navigate"
	if runs && (a.NotFound != events.NotFoundSPA || !navigates) {
		x.version = ""
		return false
	}
	page := list.NotFound(path, a.NotFound)
	switch {
	case page == "":
		x.refuse(noFile)
	case a.NotFound == events.NotFoundPage:
		x.file(list, w, page, path, http.StatusNotFound)
	default:
		x.file(list, w, page, path, http.StatusOK)
	}
	return true
}

// unreadable refuses a request because its file, or the list of files, cannot be read.
func (x *exchange) unreadable(err error) {
	if x.r.Context().Err() == nil {
		x.g.log.Error().Err(err).Str("worker", x.service.worker.Target()).Msg("a file cannot be read")
	}
	x.refuse(noFiles)
}

// found answers with what the list has at a path, which is not escaped.
func (x *exchange) found(list *assets.List, path string) bool {
	w, query := x.service.worker, ""
	if x.r.URL.RawQuery != "" {
		query = "?" + x.r.URL.RawQuery
	}
	switch to, status := list.Location(path, query); status {
	case 0:
	case http.StatusOK:
		if file := list.At(to); file != "" {
			x.file(list, w, file, path, http.StatusOK)
			return true
		}
		return false
	default:
		if strings.HasPrefix(to, "/") {
			to = x.prefix + to
		}
		x.redirect(to, status)
		return true
	}
	f, ok := list.Find(path, w.Assets.HTML)
	switch {
	case ok && f.Redirect != "":
		x.redirect(x.prefix+(&url.URL{Path: f.Redirect}).EscapedPath()+query, http.StatusTemporaryRedirect)
	case ok:
		x.file(list, w, f.File, path, http.StatusOK)
	default:
		return x.former(path)
	}
	return true
}

// former answers with the file of another version, if that has one at exactly this path: a page of one version asks for
// files that only this version has. Pages are not looked for, nor the files of a version that wants another token.
func (x *exchange) former(path string) bool {
	if strings.HasSuffix(path, ".html") {
		return false
	}
	for _, other := range x.service.others() {
		list, err := x.g.Files.List(x.r.Context(), other.Owner, other.Assets.Files)
		if err != nil || !list.Has(path) {
			continue
		}
		x.version = other.Version
		x.file(list, other, path, path, http.StatusOK)
		return true
	}
	return false
}

// maxOthers is the most versions whose files are looked for, beside the one that answers. A client can ask for any number
// of paths that no version has.
const maxOthers = 2

// others are versions with other files: those that share the events with the one that answers, and then the last ones
// before it.
func (s service) others() (list []*events.Worker) {
	add := func(w *events.Worker) {
		same := func(o *events.Worker) bool { return o.Assets.Files == w.Assets.Files }
		if len(list) < maxOthers && w.Assets != nil && !same(s.worker) && !slices.ContainsFunc(list, same) &&
			(w.HTTP == nil || w.HTTP.Auth == "" || w.HTTP.Auth == s.Auth) {
			list = append(list, w)
		}
	}
	for _, share := range s.installed.Deployment.Split {
		if w := s.installed.Version(share.Version); w != nil {
			add(w)
		}
	}
	for _, w := range slices.Backward(s.installed.Versions) {
		if w.Number < s.worker.Number {
			add(w)
		}
	}
	return list
}

func (x *exchange) redirect(to string, status int) {
	h := x.header()
	h["Location"] = []string{to}
	h["Content-Length"] = []string{"0"}
	x.head(status)
}

// mustRevalidate has browsers ask whether a file is still the same. _headers may say otherwise.
const mustRevalidate = "public, max-age=0, must-revalidate"

// file answers with a file of version w. path is that of the request, for _headers.
func (x *exchange) file(list *assets.List, w *events.Worker, name, path string, status int) {
	f := list.Files[name]
	stored, err := x.g.Files.Stored(x.r.Context(), w.Owner, f.Hash)
	if err != nil {
		x.unreadable(err)
		return
	}
	base := x.baseOf(w, f)
	e := assets.Plain
	if base == "" {
		e = encodingFor(x.r.Header.Values("Accept-Encoding"), stored)
	}
	size, _ := stored.SizeOf(e)
	held := min(size, assets.PartBytes)
	if !x.g.owners.hold(w.Owner, held) {
		x.refuse(noMemory)
		return
	}
	defer x.g.owners.drop(w.Owner, held)
	file := &fileBody{ctx: x.r.Context(), files: x.g.Files, owner: w.Owner, hash: f.Hash, encoding: e, size: size}
	if err := file.load(0); err != nil {
		x.unreadable(err)
		return
	}
	body := &pageBody{fileBody: file, text: base, place: min(f.BaseAt-1, size)}
	h := x.header()
	h["Content-Type"] = []string{f.Type}
	h["Cache-Control"] = []string{mustRevalidate}
	if stored.Gzip+stored.Brotli > 0 {
		h[headerVary] = []string{strings.TrimPrefix(strings.Join(append(h[headerVary], "Accept-Encoding"), ", "), ", ")}
	}
	list.Mark(path, h)
	tag := f.Hash[:32]
	if e != assets.Plain {
		h["Content-Encoding"] = []string{encodings[e]}
		tag += "-" + encodings[e]
	}
	if base != "" {
		tag += "-" + assets.HashOf([]byte(base))[:16]
	}
	h["Etag"] = []string{`"` + tag + `"`}
	h["Content-Length"] = []string{strconv.FormatInt(size+int64(len(base)), 10)}
	if status == http.StatusOK {
		http.ServeContent(fileWriter{x}, x.r, "", time.Time{}, body)
		return
	}
	x.head(status)
	if x.r.Method != http.MethodHead {
		_, _ = io.Copy(fileWriter{x}, body) // the client has gone, or sees that the body is short
	}
}

// baseOf is the <base> that goes into a page of version w, "" = none. Relative URLs of a page begin at the worker's base
// then, whatever path the page is at.
func (x *exchange) baseOf(w *events.Worker, f assets.File) string {
	if x.service.Base == "" || f.BaseAt == 0 || w != x.service.worker {
		return ""
	}
	return `<base href="` + html.EscapeString(x.prefix) + `/">`
}

// encodings are the names of encodings in HTTP.
var encodings = [...]string{assets.Gzip: "gzip", assets.Brotli: "br"}

// encodingFor chooses the encoding of a response: the smallest that the client takes.
func encodingFor(accepted []string, stored assets.Stored) assets.Encoding {
	takes := map[string]bool{}
	for _, value := range accepted {
		for one := range strings.SplitSeq(value, ",") {
			name, parameter, _ := strings.Cut(one, ";")
			q, err := 1., error(nil)
			if text, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
				q, err = strconv.ParseFloat(text, 64)
			}
			takes[strings.ToLower(strings.TrimSpace(name))] = err == nil && q > 0
		}
	}
	best := assets.Plain
	for _, e := range []assets.Encoding{assets.Gzip, assets.Brotli} {
		size, ok := stored.SizeOf(e)
		if than, _ := stored.SizeOf(best); ok && takes[encodings[e]] && size < than {
			best = e
		}
	}
	return best
}

// fileWriter has net/http write the response to an exchange.
type fileWriter struct{ x *exchange }

func (w fileWriter) Header() http.Header    { return w.x.w.Header() }
func (w fileWriter) WriteHeader(status int) { w.x.head(status) }
func (w fileWriter) Write(data []byte) (int, error) {
	if err := w.x.send(data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// fileBody is an io.ReadSeeker of a stored file. It has one part at a time.
type fileBody struct {
	ctx         context.Context //nolint:containedctx // of the request
	files       Files
	owner, hash string
	encoding    assets.Encoding
	size, at    int64
	part        []byte
	loaded      int64 // number of part, from 1; 0 = none
}

var errShort = errors.New("a part of the file is shorter than it was stored")

// load loads the part with that offset.
func (b *fileBody) load(offset int64) error {
	n := offset / assets.PartBytes
	if offset >= b.size || b.loaded == n+1 {
		return nil
	}
	part, err := b.files.Part(b.ctx, b.owner, b.hash, b.encoding, int(n))
	if err != nil {
		return err
	}
	if int64(len(part)) != min(assets.PartBytes, b.size-n*assets.PartBytes) {
		return errShort
	}
	b.part, b.loaded = part, n+1
	return nil
}

func (b *fileBody) Read(p []byte) (int, error) {
	if b.at >= b.size {
		return 0, io.EOF
	}
	if err := b.load(b.at); err != nil {
		return 0, err
	}
	n := copy(p, b.part[b.at%assets.PartBytes:])
	b.at += int64(n)
	return n, nil
}

var errSeek = errors.New("a file has no such place")

func (b *fileBody) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.size
	}
	if offset < 0 {
		return 0, errSeek
	}
	b.at = offset
	return offset, nil
}

// pageBody is an io.ReadSeeker of a stored file with a text in it.
type pageBody struct {
	*fileBody
	text   string // "" = the file alone
	place  int64  // of text in the file
	offset int64
}

func (b *pageBody) Read(p []byte) (n int, err error) {
	length := int64(len(b.text))
	switch {
	case length == 0 || b.offset >= b.place+length:
		_, _ = b.fileBody.Seek(b.offset-length, io.SeekStart)
		n, err = b.fileBody.Read(p)
	case b.offset >= b.place:
		n = copy(p, b.text[b.offset-b.place:])
	default:
		_, _ = b.fileBody.Seek(b.offset, io.SeekStart)
		n, err = b.fileBody.Read(p[:min(int64(len(p)), b.place-b.offset)])
	}
	b.offset += int64(n)
	return n, err
}

func (b *pageBody) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.offset
	case io.SeekEnd:
		offset += b.size + int64(len(b.text))
	}
	if offset < 0 {
		return 0, errSeek
	}
	b.offset = offset
	return offset, nil
}
