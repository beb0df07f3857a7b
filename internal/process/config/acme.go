package config

import (
	"fmt"
	"net/mail"
	"net/url"
	"strings"
)

// directories are the values of PINWHEEL_HTTP_ACME that stand for a URL.
var directories = map[string]string{
	"letsencrypt":         "https://acme-v02.api.letsencrypt.org/directory",
	"letsencrypt-staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
}

// ACMEDirectory is the URL of PINWHEEL_HTTP_ACME; "" = none.
func (c Config) ACMEDirectory() string {
	if u, ok := directories[c.HTTPAcme]; ok {
		return u
	}
	return c.HTTPAcme
}

// letsEncryptWeek is how many certificates Let's Encrypt issues in a week for hosts of one registered domain.
const letsEncryptWeek = 50

// ACMEDomainOrders bounds the orders in a week for hosts of one registered domain; 0 = the CA is not known to.
func (c Config) ACMEDomainOrders() int {
	if _, ok := directories[c.HTTPAcme]; ok {
		return letsEncryptWeek
	}
	return 0
}

// acmeFault says why PINWHEEL_HTTP_ACME does not go together with other settings.
func (c Config) acmeFault(why string) error {
	return fmt.Errorf("%w (%s)", wrongValue("PINWHEEL_HTTP_ACME", c.HTTPAcme), why)
}

// CheckACMEKey returns an error when PINWHEEL_HTTP_ACME has no PINWHEEL_SECRETS_KEY. A process that answers HTTP
// requests must not start then. Commands do not need the key.
func (c Config) CheckACMEKey() error {
	if c.HTTPAcme == "" || c.SecretsKey != "" {
		return nil
	}
	return c.acmeFault("PINWHEEL_SECRETS_KEY is empty: keys of certificates are not stored without encryption")
}

// acmeFaults are the other settings that do not go together with PINWHEEL_HTTP_ACME.
func (c Config) acmeFaults() (errs []error) {
	if c.HTTPAcme == "" {
		return nil
	}
	fault := func(wrong bool, why string) {
		if wrong {
			errs = append(errs, c.acmeFault(why))
		}
	}
	fault(!validDirectory(c.ACMEDirectory()), "that is no directory")
	fault(c.HTTPAddr == "", "PINWHEEL_HTTP_ADDR is empty: no certificate is needed")
	fault(c.HTTPCert != "" || c.HTTPKey != "", "PINWHEEL_HTTP_CERT or PINWHEEL_HTTP_KEY is set too: certificates come from files or by ACME")
	return errs
}

func (c Config) acmeChecks() []check {
	on := c.HTTPAcme != ""
	return []check{
		{"HTTPAcmeEmail", c.HTTPAcmeEmail, c.HTTPAcmeEmail == "" || on && validEmail(c.HTTPAcmeEmail)},
		{"HTTPAcmeCA", c.HTTPAcmeCA, c.HTTPAcmeCA == "" || on && readable(c.HTTPAcmeCA)},
		{"HTTPAcmeOwnerHosts", c.HTTPAcmeOwnerHosts, between(c.HTTPAcmeOwnerHosts, 1, 100)},
	}
}

func validDirectory(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == ""
}

func validEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && !strings.ContainsAny(s, "?,; \"")
}
