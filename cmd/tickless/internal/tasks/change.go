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

// A changeFunc is a method of Client that changes the tasks with the given IDs, and a
// bulkFunc one that changes those that match a filter.
type (
	changeFunc = func(c *durable.Client, ctx context.Context, ids []string) ([]durable.Outcome, error)
	bulkFunc   = func(c *durable.Client, ctx context.Context, f durable.Filter, opts ...durable.BulkOption) (int, error)
)

// makeDueNow returns a changeFunc that calls do to make tasks due now.
func makeDueNow(do func(*durable.Client, context.Context, []durable.Move) ([]durable.Outcome, error)) changeFunc {
	return func(c *durable.Client, ctx context.Context, ids []string) ([]durable.Outcome, error) {
		moves := make([]durable.Move, len(ids))
		for i, id := range ids {
			moves[i] = durable.Move{ID: id, When: durable.After(0)}
		}
		return do(c, ctx, moves)
	}
}

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
		if ids[i], err = unescapeID(arg); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// newBulkCommand returns a command that changes the tasks whose IDs are its arguments, with
// do, or those that its flags select, with doAll. If verb, such as "cancel", is not empty,
// the command asks for confirmation. done says what was done, after a number.
func (c *sharedFlags) newBulkCommand(name, short, verb, done string, do changeFunc, doAll bulkFunc) *cobra.Command {
	var s selection
	var limit int
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
			if err == nil && cmd.Flags().Changed("limit") && limit < 1 {
				err = fmt.Errorf("the limit must be positive, got %d", limit)
			}
			ids, err2 := unescapeIDs(args)
			if err = errors.Join(err, err2); err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				if len(ids) > 0 {
					if err := c.confirmChange(cmd, verb, formatTaskCount(len(ids))); err != nil {
						return err
					}
					outcomes, err := do(client, ctx, ids)
					return errors.Join(c.printOutcomes(cmd, ids, outcomes, true), err)
				}
				var opts []durable.BulkOption
				what := "all tasks that match"
				if limit > 0 {
					opts = append(opts, durable.AtMost(limit))
					what = "up to " + formatTaskCount(limit)
				}
				if err := c.confirmChange(cmd, verb, what); err != nil {
					return err
				}
				bar := progress{cmd: cmd, done: done, isShown: isTerminal(cmd)}
				n := 0
				for _, state := range s.bulkStates(name, f) {
					f.State = state
					changed, err := doAll(client, ctx, f, append(opts, durable.Progress(func(changed int) { bar.show(n + changed) }))...)
					n += changed
					if err != nil {
						return errors.Join(bar.finish(c, n), err)
					}
				}
				return bar.finish(c, n)
			})
		},
	}
	s.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&s.selectAll, "all", false, "all tasks that the command applies to")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most this many tasks")
	if verb != "" {
		cmd.Flags().BoolVarP(&c.skipConfirm, "yes", "y", false, "do not ask")
	}
	return cmd
}

// bulkStates returns the states of the tasks that a command selects. With flags, the command
// selects those states that it applies to; an empty filter needs them one by one.
func (s *selection) bulkStates(name string, f durable.Filter) []durable.State {
	switch {
	case f != durable.Filter{}:
		return []durable.State{0}
	case name == "cancel":
		return []durable.State{durable.Pending, durable.Running}
	}
	return []durable.State{durable.Dead}
}

func (c *sharedFlags) confirmChange(cmd *cobra.Command, verb, what string) error {
	if verb == "" {
		return nil
	}
	return c.confirm(cmd, verb+" "+what)
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
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				outcomes, err := makeDueNow((*durable.Client).RescheduleBatch)(client, ctx, ids)
				return errors.Join(c.printOutcomes(cmd, ids, outcomes, true), err)
			})
		},
	}
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

// pauseTarget is what the commands pause and resume apply to.
type pauseTarget struct {
	handler, note string
	all           bool
}

func (x *pauseTarget) check(ids []string) error {
	given := 0
	for _, is := range []bool{len(ids) > 0, x.handler != "", x.all} {
		if is {
			given++
		}
	}
	if x.note != "" && x.handler == "" {
		return cli.UsageError{Err: errors.New("--note is for --handler")}
	}
	if given != 1 {
		return cli.UsageError{Err: errors.New("give the IDs of tasks, or --handler, or --all for the whole store")}
	}
	return nil
}

func (x *pauseTarget) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&x.handler, "handler", "", "all tasks of this handler, on all workers")
	cmd.Flags().BoolVar(&x.all, "all", false, "the whole store")
}

func (c *sharedFlags) newPauseCommand() *cobra.Command {
	var x pauseTarget
	cmd := &cobra.Command{
		Use:   "pause [ID...]",
		Short: "Stops tasks, a handler or the whole store from running",
		Long: `Stops tasks, a handler or the whole store from running, on all workers. What is running
ends; the rest waits, with its time and its attempts, until resume.`,
		Example: "  tickless tasks pause --file tasks.db order-17\n  tickless tasks pause --file tasks.db --handler mail --note \"relay is down\"\n  tickless tasks pause --file tasks.db --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.pauseOrResume(cmd, args, &x, (*durable.Client).PauseTask, (*durable.Client).Pause,
				func(client *durable.Client, ctx context.Context) error {
					return client.PauseHandler(ctx, x.handler, x.note)
				})
		},
	}
	x.addFlags(cmd)
	cmd.Flags().StringVar(&x.note, "note", "", "with --handler: why, for those who wonder")
	return cmd
}

func (c *sharedFlags) newResumeCommand() *cobra.Command {
	var x pauseTarget
	cmd := &cobra.Command{
		Use:     "resume [ID...]",
		Short:   "Ends the pause of tasks, of a handler or of the whole store",
		Long:    "Ends the pause of tasks, of a handler or of the whole store. What is past its time runs at once.",
		Example: "  tickless tasks resume --file tasks.db order-17\n  tickless tasks resume --file tasks.db --handler mail\n  tickless tasks resume --file tasks.db --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.pauseOrResume(cmd, args, &x, (*durable.Client).ResumeTask, (*durable.Client).Resume,
				func(client *durable.Client, ctx context.Context) error { return client.ResumeHandler(ctx, x.handler) })
		},
	}
	x.addFlags(cmd)
	return cmd
}

func (c *sharedFlags) pauseOrResume(cmd *cobra.Command, args []string, x *pauseTarget,
	task func(*durable.Client, context.Context, string, ...durable.ChangeOption) (durable.Outcome, error), all, handler func(*durable.Client, context.Context) error) error {
	if err := x.check(args); err != nil {
		return err
	}
	ids, err := unescapeIDs(args)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
		switch {
		case x.all:
			return all(client, ctx)
		case x.handler != "":
			return handler(client, ctx)
		}
		outcomes := make([]durable.Outcome, 0, len(ids))
		for _, id := range ids {
			out, err := task(client, ctx, id)
			if err != nil {
				return errors.Join(c.printOutcomes(cmd, ids, outcomes, true), fmt.Errorf("%s: %w", escapeText(id), err))
			}
			outcomes = append(outcomes, out)
		}
		return c.printOutcomes(cmd, ids, outcomes, true)
	})
}
