package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
)

// A taskOutcome says what happened to a task.
type taskOutcome struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
}

// unescapeIDs returns the IDs that arguments name.
func unescapeIDs(args []string) ([]string, error) {
	ids := make([]string, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = unescapeID(arg); err == nil && arg == "" {
			err = errors.New("an ID is empty")
		}
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// newBulkCommand returns the command cancel, requeue or purge: for the tasks whose IDs are
// its arguments, or those that its flags select. It asks for confirmation, except for
// requeue. done says what was done, after a number.
func (c *sharedFlags) newBulkCommand(name, short, done string) *cobra.Command {
	var s selection
	var limit int
	asks := name != "requeue"
	cmd := &cobra.Command{
		Use:   name + " [ID...]",
		Short: short,
		Long: short + `.

The arguments are the IDs of tasks. Without arguments, the flags select tasks; --all
selects all tasks that the command applies to, and --limit how many at most. The work
goes on in steps: after an interruption, run the command again.`,
		Example: fmt.Sprintf("  tickless tasks %[1]s --file tasks.db order-17 order-18\n  tickless tasks %[1]s --file tasks.db --handler mail --limit 1000", name),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.filter()
			if err == nil && (len(args) > 0) == (s.selectAll || f != (durable.Filter{})) {
				err = errors.New("give either IDs, or flags that select tasks")
			}
			switch {
			case err != nil || !cmd.Flags().Changed("limit"):
			case len(args) > 0:
				err = errors.New("--limit is for flags that select tasks")
			case limit < 1:
				err = fmt.Errorf("the limit must be positive, got %d", limit)
			}
			ids, err2 := unescapeIDs(args)
			if err = errors.Join(err, err2); err != nil {
				return cli.UsageError{Err: err}
			}
			what := "all tasks that match"
			switch {
			case len(ids) > 0:
				what = formatTaskCount(len(ids))
			case limit > 0:
				what = "up to " + formatTaskCount(limit)
			}
			return c.withTasks(cmd, false, func(ctx context.Context, x target) error {
				if asks {
					if err := c.confirm(cmd, name+" "+what); err != nil {
						return err
					}
				}
				if len(ids) > 0 {
					return c.changeEach(ctx, cmd, x, ids)
				}
				bar := progress{cmd: cmd, done: done, isShown: isTerminal(cmd)}
				n := 0
				for _, f.State = range bulkStates(name, f) {
					if limit > 0 && n >= limit {
						break
					}
					changed, err := x.changeAll(ctx, name, f, max(0, limit-n), func(changed int) { bar.show(n + changed) })
					n += changed
					if err != nil {
						return errors.Join(bar.finish(c, n), err)
					}
				}
				return bar.finish(c, n)
			})
		},
	}
	s.addFlags(cmd.Flags(), "tasks", dueTime)
	cmd.Flags().BoolVar(&s.selectAll, "all", false, "all tasks that the command applies to")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most this many tasks")
	if asks {
		c.addYes(cmd)
	}
	return cmd
}

// bulkStates returns the states of the tasks that a command selects. With flags, the command
// selects those states that it applies to; an empty filter needs them one by one.
func bulkStates(name string, f durable.Filter) []durable.State {
	switch {
	case f != durable.Filter{}:
		return []durable.State{0}
	case name == "cancel":
		return []durable.State{durable.Pending, durable.Running}
	}
	return []durable.State{durable.Dead}
}

// progress shows in one line of a terminal how far a command has come.
type progress struct {
	cmd     *cobra.Command
	done    string
	isShown bool
}

func isTerminal(cmd *cobra.Command) bool {
	f, ok := cmd.ErrOrStderr().(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) show(n int) {
	if p.isShown {
		fmt.Fprintf(p.cmd.ErrOrStderr(), "\r%s %s", figures.GroupDigits(int64(n)), p.done)
	}
}

// finish prints the number of changed tasks.
func (p *progress) finish(c *sharedFlags, n int) error {
	if p.isShown {
		fmt.Fprint(p.cmd.ErrOrStderr(), "\r\x1b[K")
	}
	if c.asJSON {
		return figures.PrintJSON(p.cmd.OutOrStdout(), map[string]int{"count": n})
	}
	_, err := fmt.Fprintf(p.cmd.OutOrStdout(), "%s %s\n", figures.GroupDigits(int64(n)), p.done)
	return err
}

// newRunCommand returns the command run.
func (c *sharedFlags) newRunCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "run ID...",
		Short:   "Runs pending tasks now",
		Long:    "Runs pending tasks now. A paused task runs once and stays paused. Of a repeating task whose run\nis due or being retried, that run is tried now.",
		Example: "  tickless tasks run --file tasks.db order-17 order-18",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := unescapeIDs(args)
			if err == nil && len(ids) == 0 {
				err = errors.New("give the IDs of tasks")
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withTasks(cmd, false, func(ctx context.Context, x target) error { return c.changeEach(ctx, cmd, x, ids) })
		},
	}
}

// changeEach carries out the command on tasks, and prints the outcomes.
func (c *sharedFlags) changeEach(ctx context.Context, cmd *cobra.Command, x target, ids []string) error {
	outcomes, err := x.changeEach(ctx, cmd.Name(), ids)
	return errors.Join(c.printOutcomes(cmd, ids, outcomes, true), err)
}

// printOutcomes prints what happened to each task. If the tasks were given by ID, it
// returns an error if one does not exist.
func (c *sharedFlags) printOutcomes(cmd *cobra.Command, ids []string, outcomes []durable.Outcome, byID bool) error {
	numMissing := 0
	results := make([]taskOutcome, len(outcomes))
	for i, o := range outcomes {
		results[i] = taskOutcome{escapeText(ids[i]), o.String()}
		if o == durable.Absent {
			numMissing++
		}
	}
	var err error
	if c.asJSON {
		err = figures.PrintJSON(cmd.OutOrStdout(), results)
	} else {
		t := newTable(cmd, "ID", "OUTCOME")
		for _, r := range results {
			t.addRow(r.ID, r.Outcome)
		}
		err = t.flush()
	}
	if numMissing > 0 && byID && err == nil {
		return fmt.Errorf("%d of %d tasks do not exist or cannot be changed by %s", numMissing, len(ids), cmd.Name())
	}
	return err
}

// newPauseCommand returns the command pause or resume.
func (c *sharedFlags) newPauseCommand(name, short, long string) *cobra.Command {
	var handler, note string
	var all bool
	pauses := name == "pause"
	cmd := &cobra.Command{
		Use:     name + " [ID...]",
		Short:   short,
		Long:    long,
		Example: fmt.Sprintf("  tickless tasks %[1]s --file tasks.db order-17\n  tickless tasks %[1]s --file tasks.db --handler mail\n  tickless tasks %[1]s --file tasks.db --all", name),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := unescapeIDs(args)
			given := 0
			for _, is := range []bool{len(ids) > 0, handler != "", all} {
				if is {
					given++
				}
			}
			switch {
			case err != nil:
			case note != "" && handler == "":
				err = errors.New("--note is for --handler")
			case given != 1:
				err = errors.New("give the IDs of tasks, or --handler, or --all for the whole store")
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withTasks(cmd, false, func(ctx context.Context, x target) error {
				switch {
				case all && pauses:
					return x.Pause(ctx)
				case all:
					return x.Resume(ctx)
				case handler != "" && pauses:
					return x.PauseHandler(ctx, handler, note)
				case handler != "":
					return x.ResumeHandler(ctx, handler)
				}
				return c.changeEach(ctx, cmd, x, ids)
			})
		},
	}
	cmd.Flags().StringVar(&handler, "handler", "", "all tasks of this handler, on all workers")
	cmd.Flags().BoolVar(&all, "all", false, "the whole store")
	if pauses {
		cmd.Flags().StringVar(&note, "note", "", "with --handler: why, for those who wonder")
	}
	return cmd
}
