// Package child starts the processes that a command runs a part of its work in.
package child

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Process is a child: a process of this very program that a command runs a part of its
// work in: "tickless COMMAND --child". It gets its orders as JSON on its standard
// input and replies on its standard output. Its input stays open for as long as it
// is wanted: that is how it is told to stop, and how it knows that its parent has
// died. Signals would not do: the second one ends a program at once. Those of a terminal
// do not reach it: it has a group of its own.
type Process struct {
	Cmd        *exec.Cmd
	Stdin      io.WriteCloser
	Stdout     io.Reader
	Complaints Output // what it says on standard error
}

// patience is how long a child that is told to stop has for its last reply.
const patience = time.Minute

// Start starts a child. When ctx ends its input is closed, and the process is
// killed if it goes on for much longer.
func Start(ctx context.Context, command string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &Process{Cmd: exec.CommandContext(ctx, self, command, "--child")}
	c.Cmd.Stderr = &c.Complaints
	c.Cmd.SysProcAttr = OwnGroup()
	if c.Stdin, err = c.Cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.Stdout, err = c.Cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	c.Cmd.Cancel = c.Stdin.Close
	c.Cmd.WaitDelay = patience
	return c, c.Cmd.Start()
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
