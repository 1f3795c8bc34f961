package idle_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// A peer that still takes bytes from the send buffer is not silent
// (envoyproxy/envoy#34035). The kernel's clock is the real one, so these tests wait. If the
// machine is so busy that the peer itself was silent for long, a test runs again.
func TestConn_PeersThatReceive(t *testing.T) {
	const timeout = time.Second
	for name, test := range map[string]struct {
		size  int                        // what the server writes
		takes func(n int, client *paced) // the client's reads, n bytes at most
	}{
		"an answer that the buffer took at once": {
			size:  1 << 20,
			takes: func(n int, c *paced) { receive(c, n, 32<<10, 60*time.Millisecond) },
		},
		"a write that waits for the buffer": {
			size: 12 << 20,
			takes: func(n int, c *paced) {
				receive(c, 4<<20, 64<<10, 40*time.Millisecond)
				receive(c, n-4<<20, 1<<20, 0)
			},
		},
		"received late, and silent for less than the timeout": {
			size: 1 << 20,
			takes: func(n int, c *paced) {
				receive(c, n, 64<<10, 50*time.Millisecond)
				time.Sleep(timeout / 2)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cs := idle.NewConns(timeout)
			t.Cleanup(func() { cs.Close() })
			for {
				inner, conn := tcpPair(t)
				require.NoError(t, conn.SetReadBuffer(64<<10))
				server := wrap(t, cs, inner)
				client := &paced{TCPConn: conn, at: time.Now()}
				done := make(chan struct{})
				go func() {
					defer close(done)
					test.takes(test.size, client)
					client.Write([]byte("again"))
					client.note()
				}()
				_, err := server.Write(make([]byte, test.size))
				if err == nil {
					_, err = io.ReadFull(server, make([]byte, 5))
				}
				server.Close()
				<-done
				if client.longest < timeout*3/4 {
					require.NoError(t, err)
					return
				}
			}
		})
	}
	t.Run("a silent peer", func(t *testing.T) {
		t.Parallel()
		cs := idle.NewConns(timeout)
		defer cs.Close()
		inner, _ := tcpPair(t)
		_, err := wrap(t, cs, inner).Write(make([]byte, 8<<20))
		require.ErrorIs(t, err, idle.ErrIdle)
	})
}

// A paced connection notes the longest time between two of its reads.
type paced struct {
	*net.TCPConn
	at      time.Time
	longest time.Duration
}

func (c *paced) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	c.note()
	return n, err
}

func (c *paced) note() {
	now := time.Now()
	c.longest, c.at = max(c.longest, now.Sub(c.at)), now
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
