package timer_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// idle records what a process used while it was idle.
type idle struct {
	Wakeups  uint64        // of the poller
	Switches int64         // context switches, of both kinds
	CPU      time.Duration // user and system
}

const idleTimers = "TICKLESS_TEST_IDLE_TIMERS"

// The child process of TestGuarantee09_IdleProcess. Without it, this test does nothing.
func TestGuarantee09_IdleChild(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(idleTimers))
	if err != nil {
		t.Skip("is run by TestGuarantee09_IdleProcess")
	}
	s := timer.New()
	defer s.Close()
	for range n {
		start(t, s, time.Hour, func() {})
	}
	if n > 0 { // the poller has woken up once, and sleeps again
		fired := make(chan struct{})
		start(t, s, time.Millisecond, func() { close(fired) })
		<-fired
	}
	runtime.GC()
	usage := func() syscall.Rusage {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return u
	}
	for range 20 { // until the fired timers are accounted for
		w := s.Stats().Wakeups
		if time.Sleep(200 * time.Millisecond); s.Stats().Wakeups == w {
			break
		}
	}
	u0, w0 := usage(), s.Stats().Wakeups
	time.Sleep(time.Second)
	u1, w1 := usage(), s.Stats().Wakeups
	json.NewEncoder(os.Stdout).Encode(idle{
		Wakeups:  w1 - w0,
		Switches: int64(u1.Nvcsw + u1.Nivcsw - u0.Nvcsw - u0.Nivcsw),
		CPU: time.Duration(u1.Utime.Nano() + u1.Stime.Nano() - u0.Utime.Nano() -
			u0.Stime.Nano()),
	})
}

// Measures an idle process with a million pending timers, and one without timers. The
// poller must not wake up. All other figures are only logged.
func TestGuarantee09_IdleProcess(t *testing.T) {
	run := func(n int) (u idle) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestGuarantee09_IdleChild$", "-test.count=1")
		cmd.Env = append(os.Environ(), idleTimers+"="+strconv.Itoa(n))
		out, err := cmd.Output()
		require.NoError(t, err, "%s", out)
		require.NoError(t, json.NewDecoder(bytes.NewReader(out)).Decode(&u), "%s", out)
		t.Logf("%7d timers, for a second: %+v", n, u)
		return u
	}
	run(0)
	require.Zero(t, run(million()).Wakeups)
}
