package bindings

import (
	"context"
	"errors"
	"net/http"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// Files answers requests of handlers with the files of their workers (env.ASSETS.fetch). ServeFile is called from
// goroutines of its own, one for each request under way.
type Files interface {
	// ServeFile answers a request with a file of w, and of no other worker. The host of the URL means nothing. follows
	// says that a redirect is followed before the handler sees the response. The memory that it holds at once is at most
	// 160 KiB: it is counted as the run's.
	ServeFile(rw http.ResponseWriter, r *http.Request, w *workers.Worker, follows bool)
}

// KindFiles is the kind of the binding of the files, as js/bindings/files.js has it. No manifest names it so.
const KindFiles = "files"

// ErrNoFiles is the error of a request for files where there are none.
var ErrNoFiles = errors.New("the worker's files cannot be read here: a handler reads them, not a module while it is loaded")

// ExchangeFile has the files of w answer a subrequest, as egress.Connections.Exchange has a server do it. files may be
// nil.
func ExchangeFile(ctx context.Context, files Files, w *workers.Worker, q egress.Request, to egress.Receiver) error {
	if files == nil || FilesName(w) == "" {
		return ErrNoFiles
	}
	return egress.Serve(ctx, q, to, func(rw http.ResponseWriter, r *http.Request) error {
		files.ServeFile(rw, r, w, q.Redirect == "follow")
		return nil
	})
}

// FilesName is the name in env of the worker's files; "" = it has none there.
func FilesName(w *workers.Worker) string {
	if w.Assets == nil {
		return ""
	}
	return w.Assets.Binding
}
