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

// specialRanges are addresses outside the public internet for which package netip has
// no method. They come from IANA's registries of special-purpose addresses.
var specialRanges = parsePrefixes(
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
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // IPv4-translated
	sixToFour  = netip.MustParsePrefix("2002::/16")
)

func parsePrefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, s := range list {
		parsed[i] = netip.MustParsePrefix(s)
	}
	return parsed
}

// isPublic reports whether an address belongs to the public internet. If an IPv6
// address embeds an IPv4 address, the IPv4 address decides.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		b := a.As16()
		switch {
		case nat64.Contains(a), translated.Contains(a):
			return isPublic(netip.AddrFrom4([4]byte(b[12:])))
		case sixToFour.Contains(a):
			return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && !containsAddr(specialRanges, a)
}

func containsAddr(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// CheckURL returns [ErrAddress] if the host of a URL is an IP address to which Handle does not
// connect, and [ErrInvalid] if the URL can never be called. It does not resolve names, which may
// stand for other addresses when the request is sent.
func (c *Caller) CheckURL(rawURL string) error {
	u, err := Request{URL: rawURL}.parseURL()
	if err != nil {
		return err
	}
	if _, err := netip.ParseAddrPort(hostAndPort(u)); err != nil {
		return nil // a name
	}
	return c.checkAddress("tcp", hostAndPort(u), nil)
}

// checkAddress is called by net.Dialer with the address of each connection, before the
// connection is made.
func (c *config) checkAddress(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrAddress, address)
	}
	if a := at.Addr().Unmap().WithZone(""); !isPublic(a) && !containsAddr(c.allowedPrefixes, a) {
		return fmt.Errorf("%w: %s is private or reserved; allow its range with callback.WithAllowed, or with --allow of tickless serve", ErrAddress, a)
	}
	if c.refused != nil && c.refused(at) {
		return fmt.Errorf("%w: %s is refused: it may be this program's own", ErrAddress, at)
	}
	return nil
}
