package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

func (c *sharedFlags) newVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Looks for damage: in a file, in each row",
		Long: `Looks for damage. In a file it checks each row, which takes minutes for millions of tasks.
On a server it checks the store's settings and numbers. With damage the exit code is 1; then
see repair.`,
		Example: "  tickless tasks verify --file tasks.db",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.location.ReadOnly = true
			return c.withStore(cmd, false, func(ctx context.Context, st store.Store) error {
				health, err := durable.New(st).Check(ctx)
				if err != nil && !errors.Is(err, durable.ErrUnsafe) {
					return err
				}
				for _, w := range health.Warnings {
					fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
				}
				file, ok := st.(*sqlitestore.Store)
				if !ok {
					return c.printCounts(cmd, "nothing is damaged", nil)
				}
				n, err := file.Verify(ctx)
				if err != nil {
					return err
				}
				return c.printCounts(cmd, "nothing is damaged", []count{{"tasks", n}})
			})
		},
	}
}

func (c *sharedFlags) newRepairCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "repair",
		Short:   "Mends indexes and counters, for example after a failover or a damaged file",
		Long:    "Mends indexes and counters, so that each task has exactly one state again. Workers may use the\nstore meanwhile. It reads every task, and does not change the content of damaged ones.",
		Example: "  tickless tasks repair --file tasks.db",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withStore(cmd, false, func(ctx context.Context, st store.Store) error {
				r, err := durable.New(st).Repair(ctx)
				if err != nil {
					return err
				}
				return c.printCounts(cmd, "", []count{{"checked", r.Looked}, {"requeued", r.Requeued}, {"doubled", r.Doubled}, {"orphaned", r.Orphaned}})
			})
		},
	}
}

func (c *sharedFlags) newBackupCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "backup NEWFILE",
		Short:   "Copies a store's file while it is in use",
		Long:    "Copies a store's file to a new file. Workers may use the store meanwhile; the copy is complete\nas of one moment. For Redis and PostgreSQL use the server's own backups.",
		Example: "  tickless tasks backup --file tasks.db backup.db",
		Args:    cli.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.requireFile(); err != nil {
				return err
			}
			return c.withStore(cmd, false, func(ctx context.Context, st store.Store) error {
				return st.(*sqlitestore.Store).Backup(ctx, args[0])
			})
		},
	}
}

func (c *sharedFlags) newRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Puts a backup in the place of a store's file",
		Long: `Puts a copy of a backup in the place of a store's file, which may be damaged or missing,
and removes the old file's log. First stop every program that uses the file. What was done
since the backup runs again, and what was scheduled since is missing.`,
		Example: "  tickless tasks restore --file tasks.db backup.db",
		Args:    cli.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.requireFile(); err != nil {
				return err
			}
			if _, err := os.Stat(c.location.File); err == nil {
				if err := c.confirm(cmd, "replace "+c.location.File); err != nil {
					return err
				}
			}
			return sqlitestore.Restore(cmd.Context(), c.location.File, args[0])
		},
	}
	c.addYes(cmd)
	return cmd
}

func (c *sharedFlags) newCopyCommand() *cobra.Command {
	var to stores.Location
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copies all tasks to another store, of any kind",
		Long: `Copies all tasks to another store, of any kind and any number of shards: pending and
repeating ones with their attempts, and dead letters. Stop the workers and clients of both
first. Tasks that the other store already has do not change. It stays paused: see resume.
After an error, run it again. Damaged tasks are skipped and named, and the exit code is 1.`,
		Example: "  tickless tasks copy --file tasks.db --to-postgres postgres://localhost/app",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.location.ReadOnly = true
			if err := cmp.Or(c.location.Check(), to.Check()); err != nil {
				return err
			}
			if c.location.IsSame(to) {
				return cli.UsageError{Err: errors.New("both stores are the same")}
			}
			return c.withStore(cmd, false, func(ctx context.Context, st store.Store) (err error) {
				dst, closeStore, err := to.CheckAndOpen(ctx, cmd.ErrOrStderr(), false)
				if err != nil {
					return fmt.Errorf("the store to copy to: %w", err)
				}
				defer func() { err = errors.Join(err, closeStore()) }()
				n, err := durable.Copy(ctx, dst, st)
				return errors.Join(c.printCounts(cmd, "", []count{{"copied", int64(n.Added)}, {"kept", int64(n.Kept)}}), err)
			})
		},
	}
	to.AddFlags(cmd.Flags(), "to-")
	return cmd
}

// A setFile is the file of the command sync.
type setFile struct {
	Set     string    `json:"set"`
	Version int64     `json:"version"`
	Tasks   []setTask `json:"tasks"`
}

type setTask struct {
	Key         string            `json:"key"`
	Handler     string            `json:"handler"`
	Group       string            `json:"group"`
	Body        string            `json:"body"`
	Headers     map[string]string `json:"headers"`
	Cron        string            `json:"cron"`
	Zone        string            `json:"zone"`
	Every       duration          `json:"every"`
	Start       time.Time         `json:"start"`
	End         time.Time         `json:"end"`
	MaxAttempts int               `json:"max_attempts"`
	Timeout     duration          `json:"timeout"`
	KeepRuns    int               `json:"keep_runs"`
	KeepFor     duration          `json:"keep_for"`
}

// A duration is a time.Duration that is written as in Go, such as 1h30m.
type duration time.Duration

func (d *duration) UnmarshalText(b []byte) error {
	x, err := time.ParseDuration(string(b))
	*d = duration(x)
	return err
}

// readSet reads a set from a file, or from in if its name is "-".
func readSet(name string, in io.Reader) (x setFile, items []durable.Item, err error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return x, nil, err
		}
		defer f.Close()
		in = f
	}
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return x, nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return x, nil, fmt.Errorf("%s: there is more after the set", name)
	}
	if x.Tasks == nil {
		return x, nil, fmt.Errorf("%s: tasks is missing: without any task, write an empty list", name)
	}
	for _, t := range x.Tasks {
		items = append(items, durable.Item{When: durable.Next(), Task: durable.Task{
			Key: t.Key, Handler: t.Handler, Group: t.Group, Body: []byte(t.Body), Headers: t.Headers, Cron: t.Cron, Zone: t.Zone, Every: time.Duration(t.Every),
			Start: t.Start, End: t.End, MaxAttempts: t.MaxAttempts, Timeout: time.Duration(t.Timeout),
			Retention: durable.Retention{Runs: t.KeepRuns, For: time.Duration(t.KeepFor)},
		}})
	}
	return x, items, nil
}

func (c *sharedFlags) newSyncCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sync FILE",
		Short: "Makes a set of repeating tasks exactly those of a file",
		Long: `Makes the repeating tasks of a set exactly those of a file: it adds new ones, changes those
that differ, and cancels those that an earlier sync of the set had. No run is lost. If the
store has a higher version of the set, nothing changes, and the exit code is 1. The file is
JSON; - is standard input:

  {"set": "reports", "version": 3, "tasks": [
    {"key": "daily", "handler": "report", "body": "all", "cron": "0 9 * * *",
     "zone": "Europe/Berlin", "keep_runs": 30},
    {"key": "ping", "handler": "ping", "every": "1h"}]}

The other fields of a task are headers, start, end, max_attempts, timeout and keep_for.`,
		Example: "  tickless tasks sync --file tasks.db reports.json",
		Args:    cli.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, items, err := readSet(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return c.withStore(cmd, false, func(ctx context.Context, st store.Store) error {
				client := durable.New(st)
				before, err := client.Stats(ctx)
				if err != nil {
					return err
				}
				synced, err := client.Sync(ctx, set.Set, set.Version, items)
				if err == nil && synced.Superseded {
					err = fmt.Errorf("the set %q has a higher version than %d: nothing changed", set.Set, set.Version)
				}
				if err != nil {
					return err
				}
				keys := make([]string, len(items))
				for i := range items {
					keys[i] = items[i].Task.Key
				}
				after, err := client.Stats(ctx)
				if n := after.Cancelled - before.Cancelled; err == nil && n > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s cancelled, which the set had before\n", formatTaskCount(int(n)))
				}
				return errors.Join(c.printOutcomes(cmd, keys, synced.Outcomes, false), err)
			})
		},
	}
}

// withStore opens the store, which must exist unless mayCreate is true, and calls f.
func (c *sharedFlags) withStore(cmd *cobra.Command, mayCreate bool, f func(ctx context.Context, st store.Store) error) error {
	st, closeStore, err := c.location.CheckAndOpen(cmd.Context(), cmd.ErrOrStderr(), !mayCreate)
	if err != nil {
		return err
	}
	return usageError(errors.Join(f(cmd.Context(), st), closeStore()))
}

func (c *sharedFlags) requireFile() error {
	if c.location.File == "" {
		return cli.UsageError{Err: errors.New("name a file with --file: a server has backups of its own")}
	}
	return c.location.Check()
}

// A count is a number and its name in JSON and in print.
type count struct {
	name string
	n    int64
}

// printCounts prints a sentence and counts in a line, or the counts as a JSON object.
func (c *sharedFlags) printCounts(cmd *cobra.Command, sentence string, counts []count) error {
	if c.asJSON {
		object := make(map[string]int64, len(counts))
		for _, x := range counts {
			object[x.name] = x.n
		}
		return figures.PrintJSON(cmd.OutOrStdout(), object)
	}
	var parts []string
	if sentence != "" {
		parts = append(parts, sentence)
	}
	for _, x := range counts {
		parts = append(parts, fmt.Sprintf("%s %s", figures.GroupDigits(x.n), x.name))
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(parts, ", "))
	return err
}
