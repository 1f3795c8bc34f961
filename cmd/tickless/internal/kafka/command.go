package kafka

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// flags are the flags of the purgatory's load.
type flags struct {
	config   config
	saturate bool
	json     bool
}

// cases returns the loads to run: that of the flags, or both of Kafka's.
func (f *flags) cases() []config {
	if f.config.P50 != 0 {
		return []config{f.config}
	}
	fast, slow := f.config, f.config
	fast.P50, fast.P75 = 20*time.Millisecond, 60*time.Millisecond
	slow.P50, slow.P75 = 200*time.Millisecond, 400*time.Millisecond
	return []config{fast, slow}
}

func (f *flags) validate() error {
	if (f.config.P50 == 0) != (f.config.P75 == 0) {
		return errors.New("give both --p50 and --p75, or neither")
	}
	for _, c := range f.cases() {
		if err := c.validate(); err != nil {
			return err
		}
	}
	return nil
}

// NewCommand returns the command that puts Kafka's load on package
// purgatory.
func NewCommand() *cobra.Command {
	f := flags{config: config{Rate: 105_000, KeySpace: 100}}
	cmd := &cobra.Command{
		Use:   "purgatory [flags]",
		Short: "Puts Kafka's load of delayed requests on package purgatory",
		Long: `Puts the load of Kafka's own purgatory test on package purgatory, then on
time.AfterFunc with a map under a mutex, and prints one table of both.

Requests arrive as a Poisson process. Each waits for a few keys until it is
answered, after a time drawn from a log-normal distribution given by its median
and its 75th percentile, or until it times out. The load is drawn beforehand, and
both sides get the same one. Without --p50 and --p75 the command runs both of
Kafka's published cases: 20/60 ms, and 200/400 ms, where half of the requests
time out.`,
		Example: `  tickless purgatory                            Kafka's cases at 105,000 requests/s
  tickless purgatory --saturate                 the highest rate that each side sustains
  tickless purgatory --p50 5ms --p75 10ms       answers of other speeds
  tickless purgatory --complete check           each answer checks all requests that wait for a key
  tickless purgatory --json > result.json       the figures as JSON`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return cli.UsageError{Err: err}
			}
			return runAll(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*cli.Count)(&f.config.Rate), "rate", "requests a second; with --saturate the first rate to try")
	flags.DurationVar(&f.config.Duration, "duration", 5*time.Second, "time over which they arrive; with --saturate at each rate")
	flags.DurationVar(&f.config.Timeout, "timeout", 200*time.Millisecond, "time after which a request expires")
	flags.DurationVar(&f.config.P50, "p50", 0, "median time until a request is answered")
	flags.DurationVar(&f.config.P75, "p75", 0, "75th percentile of the same")
	flags.IntVar(&f.config.Keys, "keys", 3, "number of keys that a request waits for")
	flags.Var((*cli.Count)(&f.config.KeySpace), "key-space", "number of different keys")
	flags.StringVar(&f.config.Complete, "complete", completions[0], "how a request is answered: "+strings.Join(completions, ", "))
	flags.Uint64Var(&f.config.Seed, "seed", 1, "seed of the load")
	flags.BoolVar(&f.saturate, "saturate", false, "find the highest rate that each side sustains")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of tables")
	return cmd
}
