package gateway

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Certificate is a TLS certificate of two files. It is read again when they change. Several goroutines may call its
// methods.
type Certificate struct {
	cert, key string
	log       zerolog.Logger
	look      time.Duration // the least time between two looks at the files

	mu      sync.Mutex
	current *tls.Certificate
	stamps  [2]stamp
	looked  time.Time
}

// stamp tells whether a file was written.
type stamp struct {
	modified time.Time
	size     int64
}

// OpenCertificate reads a certificate with its chain and its key, both in PEM.
func OpenCertificate(cert, key string, log zerolog.Logger) (*Certificate, error) {
	c := &Certificate{cert: cert, key: key, log: log, look: time.Second}
	stamps, err := c.stamp()
	if err == nil {
		err = c.read(stamps)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate for HTTP: %w", err)
	}
	return c, nil
}

func (c *Certificate) stamp() (stamps [2]stamp, err error) {
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

func (c *Certificate) read(stamps [2]stamp) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current, c.stamps = &pair, stamps
	return nil
}

// get returns the certificate for a new connection. While the files do not fit each other, for example between the
// writes of the two, it is the one before.
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= c.look {
		c.looked = now
		stamps, err := c.stamp()
		if err == nil && stamps != c.stamps {
			if err = c.read(stamps); err == nil {
				c.log.Info().Time("until", c.current.Leaf.NotAfter).Msg("the certificate for HTTP was read again")
			}
		}
		if err != nil {
			c.log.Error().Err(err).Msg("the certificate for HTTP cannot be read: the one before goes on")
		}
	}
	return c.current, nil
}

// config is for the server.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}
