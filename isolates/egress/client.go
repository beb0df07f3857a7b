package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Client connects to servers for all workers. It checks each resolved address at the moment of connecting. So it
// refuses names that resolve to a private address, and redirects to one.
type Client struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Dial connects for an owner in place of the guard, which is then behind it; nil = the guard connects. It is set
	// before the first use, and called from any goroutine. An error that is Told is passed on as it is.
	Dial Dial
	// Lookup finds addresses in place of the guard, as Dial connects; nil = the guard does. It is set before the first
	// use, and called from any goroutine.
	Lookup Lookup
	// Refuse says which addresses nothing of a handler may reach, whatever is allowed: those of the fleet's NATS. It is
	// set before the first use, and called from any goroutine. nil = none.
	Refuse func(netip.AddrPort) bool
	TLS    *tls.Config // nil = the default; set before the first use
	frames sync.Pool   // buffers of WebSockets that write
	// checkIP is what the guard says of an address, whatever the port.
	checkIP func(netip.Addr) error

	mu     sync.Mutex
	owners map[string]*Connections // only owners that have connections
}

// Dial connects to address, HOST:PORT, for an owner. ctx bounds only how long that takes.
type Dial func(ctx context.Context, owner, network, address string) (net.Conn, error)

// MaxResponseHead is the largest number of bytes in the head of a response.
const MaxResponseHead = 64 << 10

// New makes a Client. allowed are private networks that it may reach. hosts are names that it connects to, whatever
// addresses they resolve to.
func New(allowed []netip.Prefix, hosts []string) *Client {
	f := &Client{owners: map[string]*Connections{}, checkIP: func(a netip.Addr) error { return checkIP(a, allowed) }}
	free := &net.Dialer{
		Timeout: 5 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return f.checkRefused(address)
		},
	}
	guarded := &net.Dialer{
		Timeout: free.Timeout,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return cmp.Or(f.checkRefused(address), checkAddress(address, allowed))
		},
	}
	f.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err == nil && slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			return free.DialContext(ctx, network, address)
		}
		return guarded.DialContext(ctx, network, address)
	}
	return f
}

// checkRefused refuses what is closed whatever is allowed: the port of mail, and addresses that Refuse names.
func (f *Client) checkRefused(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %.64q is none", errAddress, address)
	}
	if to.Port() == mailPort {
		return errMail
	}
	if f.Refuse != nil && f.Refuse(netip.AddrPortFrom(to.Addr().Unmap().WithZone(""), to.Port())) {
		return errReserved
	}
	return nil
}

// connect connects for an owner.
func (f *Client) connect(ctx context.Context, owner, network, address string) (net.Conn, error) {
	if f.Dial != nil {
		return f.Dial(ctx, owner, network, address)
	}
	return f.dial(ctx, network, address)
}

// Trust has the Client accept the certificates of these authorities, and of no others. It is called before the first
// use. nil = those of the system, whose files are read when they are first needed.
func (f *Client) Trust(authorities *x509.CertPool) {
	if authorities != nil {
		f.TLS = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	}
}

// AuthoritiesPEM reads the authorities that the system trusts, for another process, which has no files. It reads what
// crypto/x509 reads on Linux: the files that SSL_CERT_FILE and SSL_CERT_DIR name, or the first that a distribution has.
func AuthoritiesPEM() ([]byte, error) {
	files := authorityFiles
	if f := os.Getenv("SSL_CERT_FILE"); f != "" {
		files = []string{f}
	}
	var text []byte
	var first error
	for _, f := range files {
		read, err := os.ReadFile(f)
		if err == nil {
			text = append(read, '\n')
			break
		}
		first = cmp.Or(first, err)
	}
	for _, dir := range filepath.SplitList(os.Getenv("SSL_CERT_DIR")) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if read, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
				text = append(append(text, read...), '\n')
			}
		}
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("egress: the certificates of the system: %w", cmp.Or(first, fs.ErrNotExist))
	}
	return text, nil
}

// authorityFiles are where distributions have the authorities (crypto/x509/root_linux.go).
var authorityFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// Close closes the idle connections.
func (f *Client) Close() {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.owners))
	f.mu.Unlock()
	for _, c := range all {
		c.transport.CloseIdleConnections()
	}
}
