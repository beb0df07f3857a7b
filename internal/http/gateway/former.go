package gateway

import (
	"path"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/http/assetserver"
)

// maxFormer is the most versions whose files are looked for, beside the one that answers. A client can ask for any
// number of paths that no version has.
const maxFormer = 2

// former answers with the file of another version, if that has one at exactly this path: a page of one version asks for
// files that only this version has. Only files with a hash in their name are looked for: they are the same in every
// version, and no page has such a path. Versions are looked at from the newest on, and none behind one that kept the
// path from the public.
func former(x *exchange) bool {
	text, ok := x.path.File()
	if !ok || !hashed(text) {
		return false
	}
	at, looked := workers.NewPath(x.path.Canonical()), []string{x.service.worker.Assets.Files}
	for _, other := range x.service.others() {
		if keeps(x, other) {
			return false
		}
		a := other.Assets
		if a == nil || a.Files == "" || slices.Contains(looked, a.Files) {
			continue
		}
		if len(looked) > maxFormer {
			return false
		}
		looked = append(looked, a.Files)
		site, err := assetserver.Open(x.r.Context(), x.g.Files, other)
		if err != nil {
			continue
		}
		if found, ok, err := site.Find(x.r.Context(), at, ""); err == nil && ok && found.IsAt(at) {
			x.version = other.Version
			x.file(site, found)
			return true
		}
	}
	return false
}

// others are the other versions whose files may be looked for: those that share the events with the one that answers,
// and then those before it, the newest first.
func (s service) others() (list []*workers.Worker) {
	add := func(w *workers.Worker) {
		if w != nil && w.Version != s.worker.Version && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	for _, share := range s.installed.Deployment.Split {
		add(s.installed.Version(share.Version))
	}
	for _, w := range slices.Backward(s.installed.Versions) {
		if w.Number < s.worker.Number {
			add(w)
		}
	}
	return list
}

// keeps reports whether a version does not show a file at the path of this request to everyone who sees the one that
// answers: its handler answers there, it is at no address or another one, or it wants a token that was not asked for.
func keeps(x *exchange, w *workers.Worker) bool {
	if w.Assets != nil && w.Assets.First(x.path) {
		return true
	}
	h := w.HTTP
	if h == nil {
		return x.service.Base != ""
	}
	return !h.On() || h.Base != x.service.Base ||
		h.Auth != "" && (h.Auth != x.service.Auth || x.open && !h.Public.Match(x.r.Method, x.path))
}

// minHash is the fewest characters of a hash in the name of a file. Builds write eight and more.
const minHash = 8

// hashed reports whether the name of a file has a hash of its content, as builds write it: app-1f9c0b7a.js,
// app.BkX9dQ2z.css, chunk-4UNVH5QD.js.map. A file whose name only looks so was public before, too.
func hashed(file string) bool {
	name := path.Base(file)
	ext := path.Ext(name)
	parts := strings.Split(strings.TrimSuffix(name, ext), ".")
	code := slices.Contains([]string{".js", ".mjs", ".css", ".map"}, ext)
	for _, part := range parts {
		tail := part[1+strings.LastIndexAny(part, "-_"):]
		fixed := "" // of a hash that has - or _ itself
		if at := len(part) - minHash; at > 0 && strings.ContainsRune("-_", rune(part[at-1])) {
			fixed = part[at:]
		}
		if isHash(tail, code) || isHash(fixed, code) {
			return true
		}
	}
	return false
}

// isHash reports whether a text is none that people write. code says that it is in the name of a script or a style:
// most of these have a hash, and some hashes have no digit.
func isHash(text string, code bool) bool {
	var lower, upper, digit, hex, turns int // turns: a letter follows a digit, or an upper case letter a lower case one
	last := ' '
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digit++
		case c >= 'a' && c <= 'z':
			lower++
		case c >= 'A' && c <= 'Z':
			upper++
		case c != '-' && c != '_':
			return false
		}
		if strings.ContainsRune("0123456789abcdef", c) {
			hex++
		}
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if letter && last >= '0' && last <= '9' || c >= 'A' && c <= 'Z' && last >= 'a' && last <= 'z' {
			turns++
		}
		last = c
	}
	switch {
	case len(text) < minHash || lower+upper == 0:
		return false
	case digit > 0 && (hex == len(text) || turns > 1):
		return true
	}
	return code && (turns > 0 || lower == 0 && len(text) == minHash)
}
