package alarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// While the system refuses a descriptor, package time's timers are used alone. When a
// descriptor is available again, it is used.
func TestAlarm_NoDescriptors(t *testing.T) {
	// The first timer of a process opens the runtime's poller, and the process crashes if
	// it gets no descriptor.
	time.Sleep(time.Nanosecond)
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	low := old
	low.Cur = 3
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	rang := make(chan bool)
	h := newHub()
	a := h.add(func() { rang <- true })
	exact := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.armedDescriptor != nil
	}
	for range 3 {
		a.Reset(time.Millisecond)
		require.False(t, exact())
		<-rang
	}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	h.mu.Lock()
	h.busyUntil, h.lateRingCount = 0, 0 // the machine may be busy
	h.mu.Unlock()
	a.Reset(time.Second)
	require.True(t, exact())
	a.Stop()
	h.release()
}
