package callbacks

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// quiet keeps go-redis from writing what comes back as an error as well.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

type flags struct {
	config config
	json   bool
	child  bool // the program was called by itself: see runChild
}

// NewCommand returns the command that delivers HTTP callbacks.
func NewCommand() *cobra.Command {
	f := flags{config: config{Tasks: 5_000}}
	cmd := &cobra.Command{
		Use:   "callbacks [flags]",
		Short: "Delivers HTTP callbacks from a directory or Redis, and kills the process that does",
		Long: `Schedules tasks that call an HTTP server of this program, and delivers them. Both
is done by a child process, which this program kills as kill -9 does, and starts again.
It keeps account of what was acknowledged and of what has arrived, and reports how many
tasks were delivered, how often, how late, and whether any was lost. A task whose lease
is lost with its process is late by the lease at least, and may be delivered twice.

By default the tasks are in a directory, on disk, and there is nothing to install.
With --redis they are on a server, and several worker processes share them, of which
one is killed. What the program has made is removed at the end: the directory that it
made itself, the server that it has started, its queue on a server that runs.`,
		Example: `  tickless callbacks                                      in a temporary directory
  tickless callbacks --dir data --tasks 100k --kills 5    in a new directory, which stays
  tickless callbacks --redis start                        on a redis-server that it starts
  tickless callbacks --redis redis://localhost:6379       on a server that runs
  tickless callbacks --redis redis://localhost:7000 --cluster
                                                          a cluster, by one of its servers
  tickless callbacks --redis in-process                   on miniredis, for want of a server
  tickless callbacks --kills 0 --json > result.json       nothing is killed; figures as JSON`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			redis.SetLogger(quiet{})
			if f.child {
				return runChild(cmd)
			}
			f.config.complete()
			if err := f.config.validate(); err != nil {
				return cli.UsageError{Err: err}
			}
			return runAll(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config.Dir, "dir", "", "directory for the tasks, empty or new, which stays (default: a temporary one)")
	flags.StringVar(&f.config.Redis, "redis", "", "URL of a Redis server, \"start\" for one of its own, or \"in-process\" for miniredis")
	flags.BoolVar(&f.config.Cluster, "cluster", false, "the server is one of a Redis Cluster")
	flags.Var((*cli.Count)(&f.config.Tasks), "tasks", "number of tasks to schedule, such as 10k")
	flags.DurationVar(&f.config.Duration, "duration", 5*time.Second, "time over which they fall due, at random")
	flags.IntVar(&f.config.Kills, "kills", 2, "how often a process is killed: the first of several times when half is scheduled, else while it delivers")
	flags.IntVar(&f.config.Workers, "workers", 0, "number of worker processes (default: 3 with --redis, else 1)")
	flags.IntVar(&f.config.Concurrency, "concurrency", 64, "most calls that a worker makes at a time")
	flags.DurationVar(&f.config.Lease, "lease", time.Second, "time after which a dead worker's tasks are taken over")
	flags.DurationVar(&f.config.Handling, "handling", 2*time.Millisecond, "time that the HTTP server takes for a call")
	flags.DurationVar(&f.config.Patience, "patience", 20*time.Second, "how long after the last is due or acknowledged, or the last kill, what is missing counts as lost")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of a table")
	flags.BoolVar(&f.child, "child", false, "")
	_ = flags.MarkHidden("child")
	return cmd
}

// runAll runs it where the flags say.
func runAll(cmd *cobra.Command, f flags) error {
	p, what, remove, err := prepare(cmd.Context(), f.config, queueName())
	if err != nil {
		if cmd.Context().Err() != nil {
			return cli.ErrInterrupted
		}
		return err
	}
	run := &run{config: f.config, place: p, stderr: cmd.ErrOrStderr()}
	r, err := run.all(cmd.Context())
	remove() // before anything is printed: if nobody reads that, it ends the program
	if err != nil {
		return err
	}
	r.Store = what
	if !f.json {
		if err := printTable(cmd.OutOrStdout(), f.config, r); err != nil {
			return err
		}
	}
	c := f.config
	err = cli.Conclude(cmd, f.json, report{cli.ThisMachine(), c, c.Duration.Milliseconds(), c.Lease.Milliseconds(), r})
	if err == nil && r.failed(c) {
		return cli.ExitCode(cli.ExitFailed)
	}
	return err
}
