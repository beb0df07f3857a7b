package fleet

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// The NATS of the fleet is known by each address of the machine, and nothing else is.
func TestNATSIsKnown(t *testing.T) {
	t.Parallel()
	for known, is := range map[string]map[string]bool{
		"nats://10.1.2.3:4222": {"10.1.2.3:4222": true, "127.0.0.1:4222": true, "10.1.2.3:80": false, "8.8.8.8:4222": false,
			"10.1.2.3:6222": true, "10.1.2.3:7222": true, "10.1.2.3:7422": true, "10.1.2.3:8222": true},
		"nats://10.1.2.3:14222":   {"10.1.2.3:14222": true, "10.1.2.3:4222": true, "10.9.9.9:4222": false},
		"tls://8.8.8.8":           {"8.8.8.8:4222": true, "8.8.4.4:4222": false, "[::1]:4222": true},
		"wss://nats.example.com/": {"192.168.0.1:443": false, "8.8.8.8:443": false},
		"wss://10.1.2.3":          {"10.1.2.3:443": true, "10.9.9.9:443": false},
		"ws://10.1.2.3:80":        {"10.1.2.3:80": true, "10.9.9.9:80": false, "10.1.2.3:4222": true},
		"::":                      {"10.1.2.3:4222": false},
	} {
		for address, want := range is {
			require.Equal(t, want, isServer(known, netip.MustParseAddrPort(address)), "%s %s", known, address)
		}
	}
	nc, err := natstest.Dial(natstest.Start(t).URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := sources.NewConn(nc, "")
	require.NoError(t, err)
	l := &link{nc: nc, sources: sources.Conns{"": c}}
	require.True(t, l.isNATS(netip.MustParseAddrPort(nc.ConnectedAddr())))
	require.False(t, l.isNATS(netip.MustParseAddrPort("127.0.0.1:1")))
	for _, port := range []uint16{routePort, gatewayPort, leafPort} {
		require.True(t, l.isNATS(netip.AddrPortFrom(netip.MustParseAddr("10.9.9.9"), port)))
		require.False(t, l.isNATS(netip.AddrPortFrom(netip.MustParseAddr("8.8.8.8"), port)))
	}
}
