package config

import (
	"net/netip"
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
