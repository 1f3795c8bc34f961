package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A child is a process of this very program that a command runs a part of its
// work in: "tickless COMMAND --child". It gets its orders as JSON on its standard
// input and replies on its standard output. Its input stays open for as long as it
// is wanted: that is how it is told to stop, and how it knows that its parent has
// died. Signals would not do: a terminal sends them to the children too, and the
// second one ends a program at once.
type child struct {
	cmd        *exec.Cmd
	stdin      io.WriteCloser
	stdout     io.Reader
	complaints output
}

// childPatience is how long a child that is told to stop has for its last reply.
const childPatience = time.Minute

// startChild starts a child. When ctx ends its input is closed, and the process is
// killed if it goes on for much longer.
func startChild(ctx context.Context, command string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, command, "--child")}
	c.cmd.Stderr = &c.complaints
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.stdout, err = c.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	c.cmd.Cancel = c.stdin.Close
	c.cmd.WaitDelay = childPatience
	return c, c.cmd.Start()
}

// output is what a child says on standard error, its beginning.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() < 4096 {
		o.b.Write(p)
	}
	return len(p), nil
}

// String returns the first line.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, _, _ := strings.Cut(strings.TrimSpace(o.b.String()), "\n")
	return first
}
