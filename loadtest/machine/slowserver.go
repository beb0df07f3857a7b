package machine

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// slowAnswer is the time that slowServer takes to answer.
const slowAnswer = 50 * time.Millisecond

// SlowServer is the server that workers/io.mjs calls.
type SlowServer struct {
	URL    string
	server *http.Server
}

func OpenSlowServer() (*SlowServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &http.Server{ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(slowAnswer):
				fmt.Fprintf(w, "slow %s", r.URL.Query().Get("id"))
			case <-r.Context().Done():
			}
		})}
	go func() { _ = s.Serve(l) }() // ends with close
	return &SlowServer{"http://" + l.Addr().String(), s}, nil
}

func (s *SlowServer) Close() { _ = s.server.Close() }
