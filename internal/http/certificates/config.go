package certificates

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Bucket is the KV bucket of account, certificates, challenges and ledgers. A key begins with the hash of the
// directory's URL, so that nothing of a staging directory is used for another one.
const Bucket = "PINWHEEL_CERTIFICATES"

const (
	// maxBytes bounds the bucket, and JetStream reserves so much. A certificate with its chain takes about 6 KiB. Each
	// process has a copy of the bucket in memory.
	maxBytes = 32 << 20
	// maxValue bounds a value. A ledger of MaxOwnerHosts fits.
	maxValue = 64 << 10
	// kept is how long a value is kept that no process renews.
	kept = 100 * 24 * time.Hour
	// MaxOwnerHosts is the highest Config.OwnerHosts.
	MaxOwnerHosts = 100
	// week is the time for which orders are counted.
	week = 7 * 24 * time.Hour
	// ordersPerHost times OwnerHosts is the number of orders that an owner may cause in a week, renewals apart.
	ordersPerHost = 3
	// maxOrders is how many orders a process has under way at once, and ownerOrders how many for one owner.
	maxOrders, ownerOrders = 8, 2
	// maxWaiting is how many connections to one host may wait for its certificate in a process.
	maxWaiting = 32
)

// Config configures the certificates of a fleet.
type Config struct {
	Directory  string         // URL of the ACME directory
	Email      string         // for messages of the CA; "" = none
	Roots      *x509.CertPool // that sign the certificate of the directory; nil = those of the system
	OwnerHosts int            // hosts of one owner that may have a certificate, 1 to MaxOwnerHosts
	// DomainOrders bounds the orders in a week for hosts of one registered domain, renewals apart; 0 = not.
	DomainOrders int
	Identities   *secrets.Identities // encrypt what is stored
	Replicas     int
}

func bucket(replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "TLS certificates by ACME, encrypted with age, and what each owner has caused at the CA", History: 1, TTL: kept,
		MaxBytes: maxBytes, MaxValueSize: maxValue, Storage: jetstream.FileStorage, Replicas: max(1, replicas),
	}
}

// Resources are all resources of this package in JetStream.
func Resources(replicas int) []resources.Resource {
	cfg := bucket(replicas)
	return []resources.Resource{{Bucket: &cfg}}
}

// prefix is what keys of a directory begin with.
func prefix(directory string) string {
	sum := sha256.Sum256([]byte(directory))
	return hex.EncodeToString(sum[:8]) + "."
}

// LoadRoots reads the certificates in a file, PEM. The result is nil when path is empty.
func LoadRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("certificates for ACME: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("certificates for ACME: %s has no certificate in PEM", path)
	}
	return pool, nil
}

// times are how long things may take. Tests have shorter ones.
type times struct {
	wait    time.Duration // of a connection for its certificate; net/http gives a handshake 10 s
	token   time.Duration // of a connection of the CA for the answer to a challenge, which another process may be storing
	order   time.Duration // for one order
	lost    time.Duration // after which an order that has not ended is given up: its process died
	again   time.Duration // until what went wrong without the CA is tried again
	account time.Duration // until the account is asked for again
	backoff time.Duration // until a failed order is repeated; doubled each time, up to longest
	longest time.Duration
	recent  time.Duration // after which a certificate that was issued must have come to all processes
	renew   time.Duration // of a certificate, after which it is renewed at the latest
	look    time.Duration // between two looks for certificates to renew
	pass    time.Duration // until the copy of the bucket is made again
}

var defaultTimes = times{
	wait: 9 * time.Second, token: 3 * time.Second, order: 2 * time.Minute, lost: 3 * time.Minute, again: 5 * time.Second,
	account: time.Minute, backoff: 5 * time.Minute, longest: 4 * time.Hour,
	recent: time.Minute, renew: 60 * 24 * time.Hour, look: time.Minute, pass: 5 * time.Minute,
}
