package alarm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// With no descriptor to be had, package time's timer alone does it.
func TestAlarm_NoDescriptors(t *testing.T) {
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	low := old
	low.Cur = 3
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	rang := make(chan bool)
	a := New(func() { rang <- true })
	for range 3 {
		a.Reset(0)
		<-rang
	}
	require.NotNil(t, a.(*double).fallback)
	<-a.Close()
}
