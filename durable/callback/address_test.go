package callback

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// resolver returns a resolver that has these IPv4 addresses for every name.
func resolver(addrs ...netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			var size [2]byte
			if _, err := io.ReadFull(there, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(there, query); err != nil {
				return
			}
			reply := answer(query, addrs)
			_, _ = there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		}()
		return here, nil
	}}
}

// answer returns a DNS server's reply (RFC 1035) to a query.
func answer(query []byte, addrs []netip.Addr) []byte {
	const header = 12
	question := header + bytes.IndexByte(query[header:], 0) + 1 // where its name ends
	reply := slices.Clone(query[:question+4])
	copy(reply[2:header], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	if binary.BigEndian.Uint16(query[question:]) != 1 {
		return reply // IPv6
	}
	reply[7] = byte(len(addrs))
	for _, a := range addrs {
		reply = append(reply, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, a.AsSlice()...)
	}
	return reply
}

// A task becomes a dead letter if all addresses of its host are refused. If one address
// is allowed but down, the task is tried again, in whatever order the addresses come.
func TestCaller_NameWithSeveralAddresses(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	port := s.Listener.Addr().(*net.TCPAddr).Port
	allowed, refused := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	callAt := func(addrs ...netip.Addr) error {
		c := New(WithAllowed(netip.PrefixFrom(allowed, 32)))
		defer c.Close()
		c.dialer.Resolver = resolver(addrs...)
		return call(t, c, Request{URL: fmt.Sprintf("http://several.example:%d/", port)})
	}
	orders := [][]netip.Addr{{allowed, refused}, {refused, allowed}}
	for _, addrs := range orders {
		require.NoError(t, callAt(addrs...), addrs)
	}
	s.Close()
	for _, addrs := range orders {
		err := callAt(addrs...)
		require.Error(t, err, addrs)
		require.NotErrorIs(t, err, ErrAddress, addrs)
		require.False(t, isDead(err), err)
	}
	err := callAt(refused)
	require.ErrorIs(t, err, ErrAddress)
	require.True(t, isDead(err))
}
