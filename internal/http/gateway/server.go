package gateway

import (
	"context"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"time"
)

func (g *Gateway) newServer() *http.Server {
	s := &http.Server{
		Handler: g, ReadHeaderTimeout: g.times.header, IdleTimeout: g.times.idle, MaxHeaderBytes: maxHeaderBytes,
		DisableGeneralOptionsHandler: true, ConnContext: withConnection,
		ErrorLog: stdlog.New(debugLog{g}, "", 0),
		ConnState: func(c net.Conn, s http.ConnState) {
			g.metrics.connection(c, s)
			g.connections.state(c, s)
		},
		// A client may be ahead of its requests by this much in all. The server makes room for a frame before it has come.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
			MaxReceiveBufferPerStream: streamBytes, MaxReceiveBufferPerConnection: maxStreams * streamBytes / 4},
	}
	s.TLSConfig = g.cfg.tlsConfig()
	return s
}

// debugLog writes what the server says about connections, which clients cause.
type debugLog struct{ g *Gateway }

func (l debugLog) Write(p []byte) (int, error) {
	l.g.log.Debug().Bytes("message", p).Msg("http server")
	return len(p), nil
}

// Serve answers requests that come to l until Drain or Close. It closes l. With a certificate they are HTTP/2 or
// HTTP/1.1 over TLS.
func (g *Gateway) Serve(l net.Listener) error {
	l = &boundedListener{l, g.connections}
	serve := g.server.Serve
	if g.server.TLSConfig != nil {
		serve = func(l net.Listener) error { return g.server.ServeTLS(l, "", "") }
	}
	err := serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Drain ends the gateway. First it tells clients with each response to close the connection, so that a request that is
// on its way meets no closed one. It returns when all requests are answered, or when ctx is done.
func (g *Gateway) Drain(ctx context.Context) {
	g.leaving.Store(true)
	g.sockets.end()
	leave := time.NewTimer(g.times.leave)
	defer leave.Stop()
	select {
	case <-g.metrics.noConnections():
	case <-leave.C:
	case <-ctx.Done():
	}
	_ = g.server.Shutdown(ctx)
	g.sockets.wait(ctx)
}

// Close ends what Drain has left: requests that still wait get status 503, and bodies that are not complete are cut.
func (g *Gateway) Close() {
	g.end()
	g.sockets.end()
	ctx, cancel := context.WithTimeout(context.Background(), g.times.leave)
	defer cancel()
	_ = g.server.Shutdown(ctx)
	_ = g.server.Close()
	g.sockets.wait(ctx)
}
