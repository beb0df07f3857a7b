package assetserver

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
)

// Memory counts the bytes that a response holds.
type Memory interface {
	// Hold returns false if there is no room for n bytes.
	Hold(n int64) bool
	Drop(n int64)
}

// ErrMemory is the error of Write when the Memory has no room.
var ErrMemory = errors.New("no room for a part of the file")

const headerVary = "Vary"

// mustRevalidate has browsers ask whether a file is still the same. _headers may say otherwise.
const mustRevalidate = "public, max-age=0, must-revalidate"

// Write writes an answer to a request of the method GET or HEAD, or a redirect to one of any method. With an error,
// nothing is written. m counts the part of the file that is held; nil = its caller has counted assets.PartBytes.
func (s *Site) Write(w http.ResponseWriter, r *http.Request, a Answer, m Memory) error {
	h := w.Header()
	if a.Location != "" {
		if err := s.Mark(r.Context(), a.path, h); err != nil {
			return err
		}
		h["Location"] = []string{a.Location}
		h["Content-Length"] = []string{"0"}
		w.WriteHeader(a.Status)
		return nil
	}
	f := s.list.Files[a.file]
	stored, err := s.files.Stored(r.Context(), s.worker.Owner, f.Hash)
	if err != nil {
		return err
	}
	base, e := s.base(f), assets.Plain
	if base == "" && !s.Plain {
		e = encodingFor(r.Header.Values("Accept-Encoding"), stored)
	}
	size, _ := stored.SizeOf(e)
	if held := min(size, assets.PartBytes); m != nil {
		if !m.Hold(held) {
			return ErrMemory
		}
		defer m.Drop(held)
	}
	file := &fileBody{ctx: r.Context(), files: s.files, owner: s.worker.Owner, hash: f.Hash, encoding: e, size: size}
	if err := file.load(0); err != nil {
		return err
	}
	body := &pageBody{fileBody: file, text: base, place: min(f.BaseAt-1, size)}
	h["Content-Type"] = []string{f.Type}
	h["Cache-Control"] = []string{mustRevalidate}
	if stored.Gzip+stored.Brotli > 0 && !s.Plain {
		h[headerVary] = []string{strings.TrimPrefix(strings.Join(append(h[headerVary], "Accept-Encoding"), ", "), ", ")}
	}
	if err := s.Mark(r.Context(), a.path, h); err != nil {
		return err
	}
	if e != assets.Plain {
		h["Content-Encoding"] = []string{encodings[e]}
	}
	h["Etag"] = []string{tagOf(f, e, base)}
	h["Content-Length"] = []string{strconv.FormatInt(size+int64(len(base)), 10)}
	if a.Status == http.StatusOK {
		if failsMatch(r.Header.Get("If-Match"), h.Get("Etag")) { // ServeContent would keep the length of the file
			delete(h, "Content-Length")
		}
		http.ServeContent(w, r, "", time.Time{}, body)
		return nil
	}
	w.WriteHeader(a.Status)
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, body) // the client has gone, or sees that the body is short
	}
	return nil
}

// tagOf is the entity tag of a file in an encoding, with a base in it.
func tagOf(f assets.File, e assets.Encoding, base string) string {
	tag := f.Hash[:32]
	if e != assets.Plain {
		tag += "-" + encodings[e]
	}
	if base != "" {
		tag += "-" + assets.HashOf([]byte(base))[:16]
	}
	return `"` + tag + `"`
}

// failsMatch reports whether the value of an If-Match header is there and does not name the entity tag.
func failsMatch(value, tag string) bool {
	for one := range strings.SplitSeq(value, ",") {
		if one = strings.TrimSpace(one); one == tag || one == "*" {
			return false
		}
	}
	return value != ""
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
