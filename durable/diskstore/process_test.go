package diskstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
)

// runAs is a process of a mode, which TestMain begins. It does not return.
func runAs(mode, dir, run string) {
	switch mode {
	case "hold":
		hold(dir, run)
	case "sleep":
		_, _ = io.Copy(io.Discard, os.Stdin) // until the one who started it ends it
	case "fill":
		fillUp(dir, run)
	}
	os.Exit(0)
}

// hold opens the store, schedules a task, and has the store open until it is told to
// close it. It prints "locked" if somebody else has it.
func hold(dir, run string) {
	s, err := diskstore.Open(dir)
	if errors.Is(err, diskstore.ErrLocked) {
		fmt.Println("locked")
		return
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	if _, err := durable.New(s).Schedule(context.Background(), durable.Task{Key: run, Handler: "h"}, durable.After(time.Hour)); err != nil {
		fmt.Println("error", err)
		return
	}
	if strings.HasPrefix(run, "heir") {
		// A process that outlives this one, and has inherited the file of the lock.
		f, err := os.Open(filepath.Join(dir, "LOCK"))
		if err != nil {
			fmt.Println("error", err)
			return
		}
		defer f.Close() // a close of it would give the lock back
		heir := exec.Command(os.Args[0])
		heir.Env = append(os.Environ(), "TICKLESS_DISKSTORE_MODE=sleep")
		heir.Stdin, heir.ExtraFiles = os.Stdin, []*os.File{f}
		if err := heir.Start(); err != nil {
			fmt.Println("error", err)
			return
		}
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("closed")
}

// A process is one that was started.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

func start(t *testing.T, mode, dir, run string) *process {
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "TICKLESS_DISKSTORE_CHILD="+dir, "TICKLESS_DISKSTORE_MODE="+mode, "TICKLESS_DISKSTORE_RUN="+run)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdin, p.lines = in, bufio.NewScanner(out)
	require.NoError(t, p.cmd.Start())
	return p
}

// says returns the next line that the process prints.
func (p *process) says() string {
	p.lines.Scan()
	return p.lines.Text()
}

// TestProcesses has several processes open a directory at the same time: one has it. When
// that one is killed with -9 the next one has it at once, whatever it has started, and
// all tasks that were acknowledged are there.
func TestProcesses(t *testing.T) {
	begins(t)
	if os.Getenv("TICKLESS_CHAOS") == "off" {
		t.Skip("TICKLESS_CHAOS is off")
	}
	times := 3 // with one that closes the store
	if long() {
		times = 50
	}
	dir := filepath.Join(t.TempDir(), "store")
	acked, refused := 0, 0
	for i := range times {
		var all []*process
		for j := range 3 {
			name := "run"
			if i%2 == 1 {
				name = "heir"
			}
			all = append(all, start(t, "hold", dir, fmt.Sprintf("%s-%d-%d", name, i, j)))
		}
		var owner *process
		for _, p := range all {
			switch line := p.says(); line {
			case "open":
				require.Nil(t, owner, "two processes have the directory")
				owner = p
				acked++
			case "locked":
				refused++
				require.NoError(t, p.cmd.Wait())
			default:
				t.Fatalf("%q", line)
			}
		}
		require.NotNil(t, owner, "nobody has the directory")
		_, err := diskstore.Open(dir, silent)
		require.ErrorIs(t, err, diskstore.ErrLocked)
		if i%3 == 2 { // it closes the store
			require.NoError(t, owner.stdin.Close())
			require.Equal(t, "closed", owner.says())
		} else {
			require.NoError(t, owner.cmd.Process.Kill())
		}
		// Until it is gone the directory is locked, and then it is not.
		s, err := diskstore.Open(dir, silent)
		if err != nil {
			require.ErrorIs(t, err, diskstore.ErrLocked)
			_, _ = owner.cmd.Process.Wait()
			s, err = diskstore.Open(dir, silent)
		} else {
			_, _ = owner.cmd.Process.Wait()
		}
		require.NoError(t, err)
		v, err := s.Verify(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, acked, v.Pending)
		require.NoError(t, s.Close())
		_ = owner.stdin.Close() // and its heir ends
	}
	note(t, "%d times three processes opened a directory at once: one had it, %d were refused; killed with -9, it was free at once, also when a process that it had started had inherited the lock's file; all %d tasks were there",
		times, refused, acked)
}
