package callback

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrAddress is the error of a request to an address that is not allowed: see
// [WithAllowed].
var ErrAddress = errors.New("callback: the address is not allowed")

// special are address ranges outside the public internet that package netip does not
// classify, from IANA's registries of special-purpose addresses.
var special = prefixes(
	"0.0.0.0/8",       // this network
	"100.64.0.0/10",   // shared, behind carriers' NAT
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays of 6to4
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, and broadcast
	"::/96",           // IPv4-compatible
	"64:ff9b:1::/48",  // NAT64 of a site
	"100::/64",        // discard
	"2001::/23",       // protocol assignments, Teredo
	"2001:db8::/32",   // documentation
	"3fff::/20",       // documentation
	"5f00::/16",       // segment routing
	"fec0::/10",       // site-local
)

var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	to4   = netip.MustParsePrefix("2002::/16")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// public reports whether an address belongs to the public internet. An IPv6 address
// that embeds an IPv4 address is judged by the IPv4 address.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		b := a.As16()
		switch {
		case nat64.Contains(a):
			return public(netip.AddrFrom4([4]byte(b[12:])))
		case to4.Contains(a):
			return public(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && !within(special, a)
}

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// control implements net.Dialer.Control: it checks the address of each connection
// before it is made.
func (c *config) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrAddress, address)
	}
	if a := at.Addr().Unmap().WithZone(""); !public(a) && !within(c.allowed, a) {
		return fmt.Errorf("%w: %s is private or reserved; callback.WithAllowed permits a range", ErrAddress, a)
	}
	return nil
}
