package egress

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// network is a range of addresses that handlers cannot reach, as listed in a registry.
type network struct {
	prefix netip.Prefix
	name   string
	rfc    string // or the origin
}

func special(prefix, name, rfc string) network {
	return network{netip.MustParsePrefix(prefix), name, rfc}
}

// specialNetworks are the rows of the IANA special-purpose address registries for IPv4 and IPv6. Rows within another
// row here, and rows that are globally reachable, are left out. Multicast, ranges that earlier standards reserved, and
// the addresses where clouds give machines their credentials are added. Reachable parts of a row, like the anycast
// addresses in 192.0.0.0/24, are refused as well: they belong to the nearest gateway, not to a server on the Internet.
var specialNetworks = [...]network{
	special("168.63.129.16/32", "metadata of a cloud", "Azure"),
	special("100.100.100.200/32", "metadata of a cloud", "Alibaba Cloud"),
	special("169.254.169.254/32", "metadata of a cloud", "AWS, Azure, Google Cloud"),
	special("fd00:ec2::254/128", "metadata of a cloud", "AWS"),
	special("fd20:ce::254/128", "metadata of a cloud", "Google Cloud"),

	special("0.0.0.0/8", "this network", "RFC 791"),
	special("10.0.0.0/8", "private use", "RFC 1918"),
	special("100.64.0.0/10", "shared address space", "RFC 6598"),
	special("127.0.0.0/8", "loopback", "RFC 1122"),
	special("169.254.0.0/16", "link-local", "RFC 3927"),
	special("172.16.0.0/12", "private use", "RFC 1918"),
	special("192.0.0.0/24", "IETF protocol assignments", "RFC 6890"),
	special("192.0.2.0/24", "documentation, TEST-NET-1", "RFC 5737"),
	special("192.88.99.0/24", "6to4 relay anycast, deprecated", "RFC 7526"),
	special("192.168.0.0/16", "private use", "RFC 1918"),
	special("198.18.0.0/15", "benchmarking", "RFC 2544"),
	special("198.51.100.0/24", "documentation, TEST-NET-2", "RFC 5737"),
	special("203.0.113.0/24", "documentation, TEST-NET-3", "RFC 5737"),
	special("224.0.0.0/4", "multicast", "RFC 5771"),
	special("240.0.0.0/4", "reserved, and limited broadcast", "RFC 1112"),

	special("::/128", "unspecified address", "RFC 4291"),
	special("::1/128", "loopback", "RFC 4291"),
	special("::/96", "IPv4-compatible, deprecated", "RFC 4291"),
	special("::ffff:0:0/96", "IPv4-mapped", "RFC 4291"),
	special("::ffff:0:0:0/96", "IPv4-translated, deprecated", "RFC 2765"),
	special("64:ff9b:1::/48", "IPv4-IPv6 translation of a network of its own", "RFC 8215"),
	special("100::/64", "discard-only", "RFC 6666"),
	special("100:0:0:1::/64", "dummy prefix", "RFC 9780"),
	special("2001::/32", "Teredo", "RFC 4380"),
	special("2001:2::/48", "benchmarking", "RFC 5180"),
	special("2001:10::/28", "ORCHID, deprecated", "RFC 4843"),
	special("2001:20::/28", "ORCHIDv2", "RFC 7343"),
	special("2001:30::/28", "drone remote ID", "RFC 9374"),
	special("2001::/23", "IETF protocol assignments", "RFC 2928"),
	special("2001:db8::/32", "documentation", "RFC 3849"),
	special("2002::/16", "6to4", "RFC 3056"),
	special("3fff::/20", "documentation", "RFC 9637"),
	special("5f00::/16", "segment routing", "RFC 9602"),
	special("fc00::/7", "unique local", "RFC 4193"),
	special("fe80::/10", "link-local", "RFC 4291"),
	special("fec0::/10", "site-local, deprecated", "RFC 3879"),
	special("ff00::/8", "multicast", "RFC 4291"),
}

var (
	// translated are the addresses through which a network without IPv4 reaches IPv4 servers (NAT64, RFC 6052). The
	// last four bytes are the IPv4 address.
	translated = netip.MustParsePrefix("64:ff9b::/96")
	// global is the part of IPv6 that IANA assigns. No server on the Internet has any other address.
	global = netip.MustParsePrefix("2000::/3")
)

// mailPort is that of SMTP between servers: a fleet would be used to send mail to everybody.
const mailPort = 25

var (
	errAddress  = errors.New("address is not allowed")
	errReserved = fmt.Errorf("%w: it is one of the fleet's own servers", errAddress)
	errMail     = fmt.Errorf("%w: port 25 is closed to workers: send mail by port 587 or 465, or by an HTTP API", errAddress)
)

// exceptions says how an operator can allow an address.
const exceptions = "the fleet's PINWHEEL_ALLOW_PRIVATE_ADDRESSES can allow it"

// checkAddress refuses addresses that are not public, unless the configuration allows them. address is the one to
// connect to.
func checkAddress(address string, allowed []netip.Prefix) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %.64q is none", errAddress, address)
	}
	return checkIP(ap.Addr().Unmap().WithZone(""), allowed)
}

// checkIP is checkAddress for an address without a port. ip must not be IPv4-mapped.
func checkIP(ip netip.Addr, allowed []netip.Prefix) error {
	for _, p := range allowed {
		if p.Contains(ip) {
			return nil
		}
	}
	if guard.PublicAddresses.Off() {
		return nil
	}
	return checkPublic(ip)
}

// IsPublic reports whether an address is one of a server on the Internet.
func IsPublic(ip netip.Addr) bool { return checkPublic(ip.Unmap().WithZone("")) == nil }

// checkPublic returns an error that names the special network of ip, or nil. ip must not be IPv4-mapped.
func checkPublic(ip netip.Addr) error {
	if translated.Contains(ip) {
		b := ip.As16()
		return checkPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	for i := range specialNetworks {
		if n := &specialNetworks[i]; n.prefix.Contains(ip) {
			return fmt.Errorf("%w: it is in %s: %s (%s); %s", errAddress, n.prefix, n.name, n.rfc, exceptions)
		}
	}
	if ip.Is6() && !global.Contains(ip) {
		return fmt.Errorf("%w: it is outside of %s, which is all of IPv6 that is in use; %s", errAddress, global, exceptions)
	}
	return nil
}
