//go:build unix

package heartbeat

import (
	"os"
	"syscall"
	"testing"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

// A terminal sends its interrupt to the children too. They must hand in what they
// have all the same.
func TestIdle_InterruptOfTheWholeProcessGroup(t *testing.T) {
	skipWithoutLoopbackAddresses(t)
	t.Parallel()
	cmd := clitest.Program(append([]string{"idle", "--json", "--conns", "100", "--processes", "2", "--memory", "0"}, endless...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The line comes when all children are under way.
	stdout := clitest.Interrupt(t, cmd, "tickless: 100 connections", func(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGINT) })
	r := parse(t, stdout)
	if !r.Interrupted || len(r.TCP) != 1 {
		t.Fatalf("not the report of an interrupted first run: %s", stdout)
	}
	if run := r.TCP[0]; !run.Interrupted || run.Conns != 100 || run.Early != 0 || run.Twice != 0 {
		t.Errorf("%+v", run)
	}
}
