// Demo runs a load of request timeouts on package timer, then the same load on
// time.AfterFunc. It prints their cost and lateness side by side, and checks that no timer
// is lost, early or fires twice.
//
// Requests arrive at a steady rate. Each starts a timer with its timeout. Most are
// answered in time, which stops the timer; the others time out, which runs the timer's
// callback. Delays and answers are random, but the same for both.
//
// Usage:
//
//	go run ./cmd/demo                                        a million requests over 3 seconds
//	go run ./cmd/demo -count 100k -duration 1s               a small load
//	go run ./cmd/demo -stop-ratio 0 -delay-min 1s            every request times out
//	go run ./cmd/demo -slack 10ms                            timers up to 10 ms apart share a wake-up
//	go run ./cmd/demo -json                                  the figures as JSON
//
// The exit codes are 0 for success, 1 for an error or a broken guarantee, 2 for wrong
// arguments, and 130 after an interrupt, which prints the figures so far.
//
// The load generator allocates nothing during a run. Its CPU time is part of both figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/timer"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as in shells
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// flags are the command's arguments.
type flags struct {
	config   Config
	tick     time.Duration
	maxSlack time.Duration
	asJSON   bool
}

// execute runs the program and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "demo: %v; see demo -help\n", err)
		return exitUsage
	}
	err = compare(ctx, f, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return exitFailed
	case ctx.Err() != nil:
		return exitInterrupted
	}
	return 0
}

func parseFlags(args []string, stderr io.Writer) (f flags, err error) {
	f.config.Count = 1_000_000
	set := flag.NewFlagSet("demo", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Var((*figures.CountFlag)(&f.config.Count), "count", "`number` of requests, such as 10k or 1M")
	set.DurationVar(&f.config.Duration, "duration", 3*time.Second, "time over which the requests arrive")
	set.Float64Var(&f.config.StopRatio, "stop-ratio", 0.9, "share of the requests that are answered in time, 0 to 1")
	set.DurationVar(&f.config.MinDelay, "delay-min", 100*time.Millisecond, "shortest timeout")
	set.DurationVar(&f.config.MaxDelay, "delay-max", 2*time.Second, "longest timeout")
	set.DurationVar(&f.tick, "tick", 0, "tick of the scheduler (default: the library's own)")
	set.DurationVar(&f.maxSlack, "slack", 0, "how much later timers of the scheduler may fire, to share wake-ups")
	set.Uint64Var(&f.config.Seed, "seed", 1, "seed of the delays and the answers")
	set.BoolVar(&f.asJSON, "json", false, "print JSON instead of a table")
	err = set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, "Compares Tickless and time.AfterFunc under a load of request timeouts.\n\nFlags:")
		set.SetOutput(stderr)
		set.PrintDefaults()
		return f, err
	case err != nil:
		return f, err
	case set.NArg() > 0:
		return f, fmt.Errorf("it takes no arguments, got %q", set.Arg(0))
	case f.tick < 0 || f.tick > time.Hour:
		return f, fmt.Errorf("the tick must be from 1ns to 1h, got %v", f.tick)
	case f.maxSlack < 0 || f.maxSlack > time.Hour:
		return f, fmt.Errorf("the slack must be from 0 to 1h, got %v", f.maxSlack)
	}
	return f, f.config.Validate()
}

// options returns the options for the Scheduler.
func (f *flags) options() []timer.Option {
	var opts []timer.Option
	if f.tick != 0 {
		opts = append(opts, timer.WithTick(f.tick))
	}
	if f.maxSlack != 0 {
		opts = append(opts, timer.WithSlack(0, f.maxSlack, f.maxSlack))
	}
	return opts
}

// report is the output of -json.
type report struct {
	figures.Machine
	Load        Config   `json:"load"`
	Interrupted bool     `json:"interrupted"`
	Runs        []Result `json:"runs"`
}

// newBackends make the compared backends, tickless first. A backend is made after the
// previous run, so that its memory is measured alone.
var newBackends = []func(f flags, n int) Backend{
	func(f flags, n int) Backend { return newTicklessBackend(n, f.options()...) },
	func(_ flags, n int) Backend { return NewStdBackend(n) },
}

// compare runs the load on one backend after the other and prints the results.
func compare(ctx context.Context, f flags, stdout, stderr io.Writer) error {
	plan, err := NewPlan(f.config)
	if err != nil {
		return err
	}
	var results []Result
	for i, newBackend := range newBackends {
		if i > 0 && ctx.Err() != nil {
			break
		}
		backend := newBackend(f, f.config.Count)
		fmt.Fprintf(stderr, "%s: %s requests over %v\n", backend.Name(), figures.GroupDigits(int64(f.config.Count)), f.config.Duration)
		result, err := plan.Run(ctx, backend)
		if err != nil {
			return err
		}
		results = append(results, result)
	}
	interrupted := ctx.Err() != nil
	if f.asJSON {
		err = figures.PrintJSON(stdout, report{figures.ThisMachine(), f.config, interrupted, results})
	} else {
		err = printTable(stdout, f.config, results, interrupted)
	}
	if err != nil || interrupted {
		return err
	}
	return results[0].faultsError()
}
