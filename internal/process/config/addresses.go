package config

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// SplitAddresses splits the setting AllowPrivateAddresses into addresses and host names.
func SplitAddresses(allowed []string) (addresses []netip.Prefix, hosts []string) {
	for _, a := range allowed {
		if p, err := netip.ParsePrefix(a); err == nil {
			addresses = append(addresses, p.Masked())
		} else if ip, err := netip.ParseAddr(strings.Trim(a, "[]")); err == nil {
			addresses = append(addresses, netip.PrefixFrom(ip, ip.BitLen()))
		} else {
			hosts = append(hosts, a)
		}
	}
	return addresses, hosts
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// notAHost reports whether s is neither an IP address, nor a CIDR range, nor a host name. "10.0.0.0/33" and
// "10.0.0.300" are none of these.
func notAHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return false
	}
	if _, err := netip.ParsePrefix(s); err == nil {
		return false
	}
	last := s[strings.LastIndexByte(s, '.')+1:]
	_, err := strconv.Atoi(last)
	return err == nil || len(s) > 253 || !hostName.MatchString(s)
}
