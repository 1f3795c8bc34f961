package callbacks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
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

// NewCommand returns the command that runs timers on Redis.
func NewCommand() *cobra.Command {
	f := flags{config: config{Tasks: 5_000}}
	cmd := &cobra.Command{
		Use:   "redis [flags]",
		Short: "Runs timers on Redis: HTTP callbacks by worker processes, one of which is killed",
		Long: `Schedules tasks on Redis that call an HTTP server of this program. Worker
processes deliver them. The program kills one worker while it handles calls, and
starts it again. Then it reports how many tasks were delivered, how often, and how
late.

By default the server is miniredis, in this process: you need to install nothing,
and it is slower than a real server. With --addr it is a real one. There the tasks
have a queue of their own, which the program removes at the end.`,
		Example: `  tickless redis                                       in this process
  tickless redis --addr localhost:6379 --tasks 100k    a real server
  tickless redis --addr localhost:7000 --cluster       a cluster, by one of its servers
  tickless redis --kill=false --workers 1              no worker is killed
  tickless redis --json > result.json                  the figures as JSON`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			redis.SetLogger(quiet{})
			if f.child {
				return runChild(cmd)
			}
			if err := f.config.validate(); err != nil {
				return cli.UsageError{Err: err}
			}
			return runAll(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config.Addr, "addr", "", "HOST:PORT of a Redis server, or of several of a cluster with commas between (default: a server in this process)")
	flags.BoolVar(&f.config.Cluster, "cluster", false, "the server is a Redis Cluster")
	flags.Var((*cli.Count)(&f.config.Tasks), "tasks", "number of tasks to schedule, such as 10k")
	flags.DurationVar(&f.config.Duration, "duration", 5*time.Second, "time over which they fall due, at random")
	flags.IntVar(&f.config.Workers, "workers", 3, "number of worker processes")
	flags.IntVar(&f.config.Concurrency, "concurrency", 64, "most calls that a worker makes at a time")
	flags.DurationVar(&f.config.Lease, "lease", time.Second, "time after which a dead worker's tasks go to the others")
	flags.DurationVar(&f.config.Handling, "handling", 2*time.Millisecond, "time that the HTTP server takes for a call")
	flags.BoolVar(&f.config.Kill, "kill", true, "kill a worker half way, and start it again")
	flags.DurationVar(&f.config.Patience, "patience", 20*time.Second, "how late the last may come before they count as lost")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of a table")
	flags.BoolVar(&f.child, "child", false, "")
	_ = flags.MarkHidden("child")
	return cmd
}

// runAll runs it on the server that the flags say.
func runAll(cmd *cobra.Command, f flags) error {
	c, where := f.config, f.config.Addr
	if c.Addr == "" {
		m := miniredis.NewMiniRedis()
		if err := m.StartAddr("127.0.0.1:0"); err != nil {
			return fmt.Errorf("the server in this process: %w", err)
		}
		defer m.Close()
		c.Addr, where = m.Addr(), "miniredis, in this process"
	}
	client := c.client()
	defer client.Close()
	if err := reach(cmd.Context(), client, c); err != nil {
		if cmd.Context().Err() != nil {
			return cli.ErrInterrupted
		}
		return err
	}
	run := &run{config: c, client: client, stderr: cmd.ErrOrStderr()}
	r, err := run.all(cmd.Context())
	if err != nil {
		return err
	}
	r.Server = where
	if !f.json {
		if err := printTable(cmd.OutOrStdout(), c, r); err != nil {
			return err
		}
	}
	return cli.Conclude(cmd, f.json, report{cli.ThisMachine(), c, c.Duration.Milliseconds(), c.Lease.Milliseconds(), r})
}

// reach returns an error that says what to do if the server is not there, or
// not of the kind that it is said to be.
func reach(ctx context.Context, client redis.UniversalClient, c config) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := client.Info(ctx).Result()
	if err != nil {
		if c.Cluster {
			if one := redis.NewClient(&redis.Options{Addr: strings.Split(c.Addr, ",")[0]}); one.Ping(ctx).Err() == nil {
				one.Close()
				return fmt.Errorf("the server at %s is not part of a cluster that works; without --cluster it may be used alone: %w", c.Addr, err)
			}
		}
		return fmt.Errorf("no Redis server can be reached at %s: %w", c.Addr, err)
	}
	if !c.Cluster && strings.Contains(info, "cluster_enabled:1") {
		return fmt.Errorf("the server at %s is part of a cluster: use --cluster", c.Addr)
	}
	return nil
}
