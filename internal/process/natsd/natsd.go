// Package natsd runs the NATS server that is embedded in a Pinwheel process. It is for tests, and for machines without
// an installed nats-server.
package natsd

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

// Config configures an embedded server.
type Config struct {
	// StoreDir is where JetStream keeps its data. Required.
	StoreDir string
	// Host is the address to listen on. Empty: loopback.
	Host string
	// Port is the port to listen on; -1 takes a free one.
	Port int
	// MaxPayload is the size of the largest message in bytes; 0 = the server's default, 1 MiB.
	MaxPayload int32
	// SyncAlways makes the server fsync before it acknowledges.
	SyncAlways bool
	// Log receives the server's warnings and errors. The zero Logger logs nothing.
	Log zerolog.Logger
}

// Server is a running server.
type Server struct {
	srv  *server.Server
	lock *lock
}

// PortTakenError says that another program listens on the port.
type PortTakenError struct {
	Port int
	Err  error
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("natsd: port %d is taken: %v", e.Port, e.Err)
}

// Unwrap returns the error of the attempt to listen.
func (e *PortTakenError) Unwrap() error { return e.Err }

// startTimeout limits the wait for the server to accept connections. The recovery of large streams takes time.
const startTimeout = time.Minute

// Open starts a server and waits until it accepts connections. The error is an *InUseError if another server uses
// StoreDir, and a *PortTakenError if another program uses the port.
func Open(c Config) (*Server, error) {
	if c.StoreDir == "" {
		return nil, errors.New("natsd: StoreDir is empty: name the directory for JetStream's data")
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	l, err := lockDir(c.StoreDir)
	if err != nil {
		return nil, err
	}
	srv, err := start(c)
	if err == nil {
		err = l.note(srv.ClientURL())
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return &Server{srv, l}, nil
}

func start(c Config) (*server.Server, error) {
	if err := checkPort(c.Host, c.Port); err != nil {
		return nil, err
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "pinwheel-embedded",
		Host:       c.Host, Port: c.Port, MaxPayload: c.MaxPayload,
		JetStream: true, StoreDir: c.StoreDir, SyncAlways: c.SyncAlways,
		NoSigs: true, DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, fmt.Errorf("natsd: %w", err)
	}
	srv.SetLoggerV2(logger{c.Log}, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		srv.Shutdown()
		return nil, fmt.Errorf("natsd: server on %s is not ready after %s", net.JoinHostPort(c.Host, strconv.Itoa(c.Port)),
			startTimeout)
	}
	return srv, nil
}

// checkPort detects a taken port before the server does. The server itself would exit.
func checkPort(host string, port int) error {
	if port <= 0 {
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return &PortTakenError{port, err}
	}
	return l.Close()
}

// URL is where clients of other processes connect.
func (s *Server) URL() string { return s.srv.ClientURL() }

// InProcess is the option for connections inside the process, without the network.
func (s *Server) InProcess() nats.Option { return nats.InProcessServer(s.srv) }

// Close stops the server after it has written its data.
func (s *Server) Close() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	s.lock.close()
}

// logger passes on the server's warnings and errors. It logs notices at debug level, because they are about the server
// itself.
type logger struct{ log zerolog.Logger }

func (l logger) Noticef(format string, v ...any) { l.log.Debug().Msgf("nats-server: "+format, v...) }
func (l logger) Warnf(format string, v ...any)   { l.log.Warn().Msgf("nats-server: "+format, v...) }
func (l logger) Fatalf(format string, v ...any)  { l.log.Error().Msgf("nats-server: "+format, v...) }
func (l logger) Errorf(format string, v ...any)  { l.log.Error().Msgf("nats-server: "+format, v...) }
func (l logger) Debugf(string, ...any)           {}
func (l logger) Tracef(string, ...any)           {}
