package fleet

import (
	"net/http"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/http/assetserver"
)

// fileBinding is the bindings.Files of a process.
type fileBinding struct {
	files assetserver.Files
	log   zerolog.Logger
}

// ServeFile answers a request of a handler with a file of its worker.
func (b fileBinding) ServeFile(rw http.ResponseWriter, r *http.Request, w *workers.Worker, follows bool) {
	if err := assetserver.ServeBinding(rw, r, b.files, w, follows); err != nil && r.Context().Err() == nil {
		b.log.Error().Err(err).Str("worker", w.Target()).Msg("a file cannot be read")
	}
}
