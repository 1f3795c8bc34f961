package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// settings are what the flags say, also those of a child.
type settings struct {
	runs  int
	time  time.Duration // of a measurement that has no end of its own
	tasks int           // of a burst
	sides []string
	works []string
	out   string
	raw   string

	child string // SIDE/WORK
	dir   string
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var s settings
	var names, whats string
	f := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	f.IntVar(&s.runs, "runs", 5, "runs of which the median is taken")
	f.DurationVar(&s.time, "time", time.Second, "how long a measurement schedules, and a tenth of how long one of lateness takes")
	f.IntVar(&s.tasks, "tasks", 100_000, "tasks of a burst")
	f.StringVar(&names, "sides", "", "sides to measure, with commas between (default: all)")
	f.StringVar(&whats, "work", "", "workloads, with commas between (default: all)")
	f.StringVar(&s.out, "out", "", "file to write the table to: between the markers in it, if there is one")
	f.StringVar(&s.raw, "raw", "", "file to write each run's figures to, for benchstat")
	f.StringVar(&s.child, "child", "", "used by the program itself")
	f.StringVar(&s.dir, "dir", "", "directory for the stores (default: a temporary one)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if s.child != "" {
		return runChild(&s, out)
	}
	var err error
	if s.sides, err = choose("side", names, sideNames()); err != nil {
		return err
	}
	if s.works, err = choose("workload", whats, workNames()); err != nil {
		return err
	}
	if s.runs < 1 || s.time <= 0 || s.tasks < 1 {
		return errors.New("--runs, --time and --tasks must be positive")
	}
	return measureAll(&s, out)
}

// choose returns the names in a list, or all that there are.
func choose(what, list string, all []string) ([]string, error) {
	if list == "" {
		return all, nil
	}
	some := strings.Split(list, ",")
	for _, name := range some {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no %s %q, but %s", what, name, strings.Join(all, ", "))
		}
	}
	return some, nil
}
