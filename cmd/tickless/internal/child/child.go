// Package child starts the processes that a command runs a part of its work in.
package child

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Process is a child: a process of this very program that a command runs a part of its
// work in: "tickless COMMAND --child". It gets its order as JSON on its standard input,
// and replies on its standard output, after a line that says that it has the order. Its
// input stays open for as long as it is wanted: that is how it is told to stop, and how it
// knows that its parent has died. Signals would not do: the second one ends a program at
// once. Those of a terminal do not reach it: it has a group of its own.
type Process struct {
	Cmd        *exec.Cmd
	Stdin      io.WriteCloser
	Stdout     io.Reader
	Complaints Output // what it says on standard error
}

// patience is how long a child that is told to stop has for its last reply.
const patience = time.Minute

// begun is what a child writes when it has its order.
const begun = "\n"

// attempts is how often Start tries: only as many signals, each in the wrong moment, can
// make it fail.
const attempts = 10

// Start starts a child, and waits until it has read its order. When ctx ends its input is
// closed, and the process is killed if it goes on for much longer.
func Start(ctx context.Context, command string, order any) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range attempts {
		var c *Process
		if c, err = start(ctx, self, command, order); err == nil {
			return c, nil
		}
		// A process has the group of the one that starts it for a moment, and dies of a
		// signal to that group then.
		if c == nil || !c.signaled() {
			break
		}
	}
	return nil, err
}

// start makes one attempt. With an error and a process, that process has ended.
func start(ctx context.Context, self, command string, order any) (*Process, error) {
	c := &Process{Cmd: exec.CommandContext(ctx, self, command, "--child")}
	c.Cmd.Stderr = &c.Complaints
	c.Cmd.SysProcAttr = OwnGroup()
	var err error
	if c.Stdin, err = c.Cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.Stdout, err = c.Cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	c.Cmd.Cancel = c.Stdin.Close
	c.Cmd.WaitDelay = patience
	if err := c.Cmd.Start(); err != nil {
		return nil, err
	}
	err = json.NewEncoder(c.Stdin).Encode(order)
	if _, readErr := io.ReadFull(c.Stdout, make([]byte, len(begun))); readErr != nil {
		_ = c.Stdin.Close()
		// Its end says more than what its pipes do.
		return c, fmt.Errorf("a process did not begin: %w: %s", cmp.Or(c.Cmd.Wait(), err, readErr), c.Complaints.String())
	}
	return c, nil
}

// Output is what a child says on standard error, its beginning.
type Output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() < 4096 {
		o.b.Write(p)
	}
	return len(p), nil
}

// String returns the first line.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, _, _ := strings.Cut(strings.TrimSpace(o.b.String()), "\n")
	return first
}
