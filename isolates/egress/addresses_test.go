package egress

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPublicAddresses(t *testing.T) {
	for _, c := range []struct{ address, in string }{
		// The registries: the first and the last address of ranges that are easily taken for public.
		{"0.0.0.0", "this network"}, {"0.255.255.255", "this network"}, {"10.0.0.1", "private use"}, {"100.64.0.1", "shared"},
		{"100.127.255.255", "shared"},
		{"127.0.0.1", "loopback"}, {"127.255.255.254", "loopback"}, {"169.254.1.1", "link-local"},
		{"172.16.0.1", "private use"}, {"172.31.255.255", "private use"},
		{"192.0.0.1", "protocol assignments"}, {"192.0.0.9", "protocol assignments"}, {"192.0.0.170", "protocol assignments"},
		{"192.0.2.1", "TEST-NET-1"},
		{"192.88.99.1", "6to4 relay"}, {"192.88.99.2", "6to4 relay"}, {"192.168.1.1", "private use"},
		{"198.18.0.1", "benchmarking"}, {"198.19.255.255", "benchmarking"},
		{"198.51.100.1", "TEST-NET-2"}, {"203.0.113.1", "TEST-NET-3"}, {"224.0.0.1", "multicast"},
		{"239.255.255.250", "multicast"}, {"240.0.0.1", "reserved"}, {"255.255.255.255", "reserved"},
		{"::", "unspecified"}, {"::1", "loopback"}, {"::2", "IPv4-compatible"}, {"::7f00:1", "IPv4-compatible"},
		{"::8.8.8.8", "IPv4-compatible"}, {"::ffff:0:127.0.0.1", "IPv4-translated"},
		{"64:ff9b:1::", "translation"}, {"64:ff9b:1:ffff::808:808", "translation"}, {"100::1", "discard"},
		{"100:0:0:1::1", "dummy"}, {"100:0:0:2::1", "outside of 2000::/3"},
		{"2001::1", "Teredo"}, {"2001:0:ffff::1", "Teredo"}, {"2001:1::1", "protocol assignments"},
		{"2001:2::1", "benchmarking"}, {"2001:10::1", "ORCHID,"}, {"2001:20::1", "ORCHIDv2"},
		{"2001:30::1", "drone"}, {"2001:1ff::1", "protocol assignments"}, {"2001:db8::1", "documentation"},
		{"2002:7f00:1::", "6to4"}, {"2002:808:808::1", "6to4"},
		{"3fff::1", "documentation"}, {"3fff:fff::1", "documentation"}, {"5f00::1", "segment routing"},
		{"fc00::1", "unique local"}, {"fdff::1", "unique local"},
		{"fe80::1", "link-local"}, {"fe80::1%eth0", "link-local"}, {"febf::1", "link-local"}, {"fec0::1", "site-local"},
		{"feff::1", "site-local"}, {"ff02::1", "multicast"}, {"4000::1", "outside of 2000::/3"},
		{"8000::1", "outside of 2000::/3"},
		// Addresses where clouds give machines their metadata.
		{"168.63.129.16", "metadata"}, {"169.254.169.254", "metadata"}, {"100.100.100.200", "metadata"},
		{"fd00:ec2::254", "metadata"}, {"fd20:ce::254", "metadata"},
		// An IPv4 address written as another kind of address.
		{"::ffff:127.0.0.1", "loopback"}, {"::ffff:10.1.2.3", "private use"}, {"::ffff:168.63.129.16", "metadata"},
		{"64:ff9b::127.0.0.1", "loopback"}, {"64:ff9b::a9fe:a9fe", "metadata"}, {"64:ff9b::10.0.0.1", "private use"},
		{"64:ff9b::", "this network"},
		// The Internet.
		{"8.8.8.8", ""}, {"1.0.0.0", ""}, {"100.63.255.255", ""}, {"100.128.0.0", ""}, {"172.15.255.255", ""},
		{"172.32.0.0", ""}, {"168.63.129.15", ""}, {"168.63.129.17", ""},
		{"192.31.196.1", ""}, {"192.52.193.1", ""}, {"192.175.48.1", ""}, {"198.17.255.255", ""}, {"198.20.0.0", ""},
		{"223.255.255.255", ""},
		{"2000::1", ""}, {"2001:200::1", ""}, {"2001:4860:4860::8888", ""}, {"2003::1", ""}, {"2606:4700::1111", ""},
		{"2620:4f:8000::1", ""}, {"3ffe::1", ""}, {"3fff:1000::1", ""},
		{"::ffff:8.8.8.8", ""}, {"64:ff9b::8.8.8.8", ""},
	} {
		err := checkAddress(net.JoinHostPort(c.address, "80"), nil)
		if c.in == "" {
			require.NoError(t, err, c.address)
			continue
		}
		require.ErrorIs(t, err, errAddress, c.address)
		require.Contains(t, err.Error(), c.in, c.address)
	}
	for _, wrong := range []string{"", ":80", "localhost:80", "127.1:80", "8.8.8.8", "[::1]"} {
		require.ErrorIs(t, checkAddress(wrong, nil), errAddress, wrong)
	}
}

// Named networks are open, however the address is written, and nothing else.
func TestAllowedAddresses(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fec0:1::/32"),
		netip.MustParsePrefix("168.63.129.16/32")}
	for _, address := range []string{"10.1.2.3", "::ffff:10.1.2.3", "fec0:1::5", "168.63.129.16"} {
		require.NoError(t, checkAddress(net.JoinHostPort(address, "1"), allowed), address)
	}
	for _, address := range []string{"10.2.0.1", "64:ff9b::10.1.2.3", "2002:a01:203::1", "fec0:2::5", "::10.1.2.3"} {
		require.ErrorIs(t, checkAddress(net.JoinHostPort(address, "1"), allowed), errAddress, address)
	}
}

// Every row is the reason for refusing some address: no row is hidden behind another.
func TestSpecialNetworksAreAllInUse(t *testing.T) {
	for _, n := range specialNetworks {
		require.Equal(t, n.prefix.Masked(), n.prefix)
		if n.prefix == netip.MustParsePrefix("::ffff:0:0/96") {
			continue // an IPv4-mapped address is treated as the IPv4 address in it
		}
		first, last := n.prefix.Addr(), n.prefix.Addr().AsSlice()
		for i := n.prefix.Bits(); i < 8*len(last); i++ {
			last[i/8] |= 0x80 >> (i % 8)
		}
		end, _ := netip.AddrFromSlice(last)
		require.Contains(t, checkPublic(first).Error()+checkPublic(end).Error(), n.name, n.prefix)
	}
}

// Every address that the standard library alone would classify as not public is refused, and so is its IPv4-mapped
// form.
func FuzzCheckAddress(f *testing.F) {
	for _, n := range specialNetworks {
		f.Add(n.prefix.Addr().AsSlice(), "")
	}
	f.Add([]byte{64: 0}, "eth0")
	f.Fuzz(func(t *testing.T, b []byte, zone string) {
		ip, ok := netip.AddrFromSlice(b)
		if !ok || strings.ContainsAny(zone, "]%[") {
			return
		}
		err := checkAddress(netip.AddrPortFrom(ip.WithZone(zone), 80).String(), nil)
		plain := ip.Unmap()
		if plain.IsPrivate() || plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() ||
			plain.IsUnspecified() || !plain.IsGlobalUnicast() {
			require.Error(t, err, ip)
		}
		if ip.Is4() {
			mapped := checkAddress(net.JoinHostPort(netip.AddrFrom16(ip.As16()).String(), "80"), nil)
			require.Equal(t, err == nil, mapped == nil, ip)
			through := append(make([]byte, 0, 16), 0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0)
			nat64, _ := netip.AddrFromSlice(append(through, b...))
			require.Equal(t, err == nil, checkPublic(nat64) == nil, ip)
		}
	})
}
