package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The server closes a silent connection, and not before the timeout. While a handler runs,
// its connection stays open.
func TestServe(t *testing.T) {
	const timeout = 100 * time.Millisecond
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- serve(l, timeout, sleepAndAnswer) }()
	for line, want := range map[string]string{"": "", "400ms\n": "slept 400ms\n", "soon\n": "time: invalid duration \"soon\"\n"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			c, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			io.WriteString(c, line)
			r := bufio.NewReader(c)
			if line != "" {
				answer, err := r.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, want, answer)
			}
			_, err = r.ReadByte()
			require.ErrorIs(t, err, io.EOF)
			require.GreaterOrEqual(t, time.Since(begin), timeout, "closed early")
		})
	}
	t.Cleanup(func() {
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}
