package requests

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/timer"
)

// flags are the flags of the load.
type flags struct {
	config      Config
	tick        time.Duration
	maxSlack    time.Duration
	asJSON      bool
	httpAddress string
}

func (f *flags) validate() error {
	if err := f.config.Validate(); err != nil {
		return err
	}
	if f.tick < 0 || f.tick > time.Hour {
		return fmt.Errorf("the tick must be from 1ns to 1h, got %v", f.tick)
	}
	if f.maxSlack < 0 || f.maxSlack > time.Hour {
		return fmt.Errorf("the slack must be from 0 to 1h, got %v", f.maxSlack)
	}
	if f.httpAddress != "" && f.asJSON {
		return errors.New("give either --http or --json: --http runs until interrupted and prints no result")
	}
	return nil
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

// NewCommand returns the root command, which runs the load.
func NewCommand() *cobra.Command {
	f := flags{config: Config{Count: 1_000_000}}
	cmd := &cobra.Command{
		Use:   "tickless [flags]",
		Short: "Compares Tickless and time.AfterFunc under a load of request timeouts",
		Long: `Runs a load of request timeouts on Tickless, then the same load on
time.AfterFunc, and prints both results in one table.

Requests arrive at a steady rate. Each starts a timer with its timeout. Most
are answered in time, which stops the timer; the others time out, which runs
the timer's callback. Delays and answers are random, but the same for both.`,
		Example: `  tickless                                    a million requests over 3 seconds
  tickless --count 100k --duration 1s         a small load
  tickless --stop-ratio 0 --delay-min 1s      every request times out
  tickless --tick 10ms                        a coarser tick
  tickless --slack 10ms                       timers up to 10 ms apart share a wake-up
  tickless --http :0                          a page that shows the load while it runs
  tickless --json > result.json               the figures as JSON`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UsageError{Err: fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return cli.UsageError{Err: err}
			}
			if f.httpAddress != "" {
				return runWithPage(cmd, f)
			}
			return runBackends(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*cli.CountFlag)(&f.config.Count), "count", "number of requests, such as 10k or 1M")
	flags.DurationVar(&f.config.Duration, "duration", 3*time.Second, "time over which the requests arrive")
	flags.Float64Var(&f.config.StopRatio, "stop-ratio", 0.9, "share of the requests that are answered in time, 0 to 1")
	flags.DurationVar(&f.config.MinDelay, "delay-min", 100*time.Millisecond, "shortest timeout")
	flags.DurationVar(&f.config.MaxDelay, "delay-max", 2*time.Second, "longest timeout")
	flags.DurationVar(&f.tick, "tick", 0, "tick of the scheduler (default: the library's own)")
	flags.DurationVar(&f.maxSlack, "slack", 0, "how much later timers of the scheduler may fire, to share wake-ups")
	flags.Uint64Var(&f.config.Seed, "seed", 1, "seed of the delays and the answers")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON instead of a table")
	flags.StringVar(&f.httpAddress, "http", "", "repeat the load on Tickless until interrupted, and serve its debug page at this address, such as :0 (on localhost); the page answers only for localhost and the host named here")
	return cmd
}
