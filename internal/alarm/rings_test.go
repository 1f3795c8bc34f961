package alarm

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever asks first may be in a bubble: the hub's timers would be the bubble's. It is
// asked in a process of its own, in which there is no hub yet.
func TestCounts_FirstOfAllInABubble(t *testing.T) {
	const variable = "TICKLESS_ALARM_FIRST"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	synctest.Test(t, func(t *testing.T) { require.Zero(t, Counts()) })
	rang := make(chan struct{})
	a := New(func() { close(rang) })
	a.Reset(time.Millisecond)
	<-rang
	<-a.Close()
}

// Each ring counts once, by whatever it came.
func TestCounts(t *testing.T) {
	rang := make(chan struct{})
	before := Counts()
	const rings = 50
	a := New(func() { rang <- struct{}{} })
	for range rings {
		a.Reset(time.Millisecond)
		<-rang
	}
	<-a.Close()
	after := Counts()
	all := func(r Rings) uint64 { return r.ByDescriptor + r.ByTimer + r.ByBackup }
	require.GreaterOrEqual(t, all(after)-all(before), uint64(rings))
}
