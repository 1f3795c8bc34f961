package idle_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// A peer that still takes bytes from the send buffer is not silent
// (envoyproxy/envoy#34035). The kernel's clock is the real one, so these tests wait.
func TestConn_PeersThatReceive(t *testing.T) {
	const timeout = time.Second
	for name, test := range map[string]struct {
		size  int                                 // what the server writes
		takes func(n int, conn *net.TCPConn)      // the client's reads, n bytes at most
		want  error                               // of the server's next read
		after func(t *testing.T, d time.Duration) // d is how long the server took
	}{
		"an answer that the buffer took at once": {
			size:  1 << 20,
			takes: func(n int, c *net.TCPConn) { receive(c, n, 32<<10, 60*time.Millisecond) },
		},
		"a write that waits for the buffer": {
			size: 12 << 20,
			takes: func(n int, c *net.TCPConn) {
				receive(c, 4<<20, 64<<10, 40*time.Millisecond)
				receive(c, n-4<<20, 1<<20, 0)
			},
		},
		"received late, and silent for less than the timeout": {
			size: 1 << 20,
			takes: func(n int, c *net.TCPConn) {
				receive(c, n, 64<<10, 50*time.Millisecond)
				time.Sleep(timeout / 2)
			},
		},
		"a silent peer": {
			size:  8 << 20,
			takes: func(int, *net.TCPConn) { time.Sleep(3 * timeout) },
			want:  idle.ErrIdle,
			after: func(t *testing.T, d time.Duration) { require.Less(t, d, 2*timeout) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cs := idle.NewConns(timeout)
			t.Cleanup(func() { cs.Close() })
			inner, client := tcpPair(t)
			require.NoError(t, client.SetReadBuffer(64<<10))
			server := wrap(t, cs, inner)
			go func() {
				test.takes(test.size, client)
				client.Write([]byte("again"))
			}()
			begin := time.Now()
			_, err := server.Write(make([]byte, test.size))
			if err == nil {
				_, err = io.ReadFull(server, make([]byte, 5))
			}
			require.True(t, errors.Is(err, test.want), err)
			if test.after != nil {
				test.after(t, time.Since(begin))
			}
		})
	}
}

// receive reads n bytes, at most chunk at a time, with a pause after each.
func receive(c net.Conn, n, chunk int, pause time.Duration) {
	b := make([]byte, chunk)
	for n > 0 {
		k, err := c.Read(b[:min(chunk, n)])
		if n -= k; err != nil {
			return
		}
		time.Sleep(pause)
	}
}

// golang/go#21676: net.Buffers does not know the types of other packages.
func TestConnWriteBuffers_FramesDoNotMix(t *testing.T) {
	cs := idle.NewConns(time.Minute)
	defer cs.Close()
	inner, peer := tcpPair(t)
	c := wrap(t, cs, inner)
	const frames = 5000
	errs := make(chan error, 2)
	for g := byte(1); g <= 2; g++ {
		go func() {
			for range frames {
				b := net.Buffers{{g, 0}, bytes.Repeat([]byte{g}, 98)}
				n, err := c.WriteBuffers(&b)
				if err != nil || n != 100 || len(b) != 0 {
					errs <- io.ErrShortWrite
					return
				}
			}
			errs <- nil
		}()
	}
	frame := make([]byte, 100)
	for range 2 * frames {
		_, err := io.ReadFull(peer, frame)
		require.NoError(t, err)
		require.Equal(t, 99, bytes.Count(frame, frame[:1]), "mixed")
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	c.Close()
	b := net.Buffers{{1}}
	_, err := c.WriteBuffers(&b)
	require.ErrorIs(t, err, net.ErrClosed)
}
