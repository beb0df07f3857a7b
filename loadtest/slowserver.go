package main

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// slowAnswer is the time that slowServer takes to answer.
const slowAnswer = 50 * time.Millisecond

// slowServer is the server that workers/io.mjs calls.
type slowServer struct {
	url    string
	server *http.Server
}

func openSlowServer() (*slowServer, error) {
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
	return &slowServer{"http://" + l.Addr().String(), s}, nil
}

func (s *slowServer) close() { _ = s.server.Close() }
