package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
)

// A changeFunc is a method of Client that changes the tasks with the given IDs.
type changeFunc = func(c *durable.Client, ctx context.Context, ids []string) ([]durable.Outcome, error)

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

// newChangeCommand returns a command that changes the tasks whose IDs are its arguments.
// Without arguments, its flags select tasks in the given state. If verb, such as
// "cancel", is not empty, the command asks for confirmation.
func (c *sharedFlags) newChangeCommand(name, short, verb string, state durable.State, do changeFunc) *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   name + " [ID...]",
		Short: short,
		Long: short + `.

The arguments are the IDs of tasks. Without arguments, the flags select tasks; --all
selects all tasks that the command applies to.`,
		Example: fmt.Sprintf("  tickless tasks %[1]s --file tasks.db order-17 order-18\n  tickless tasks %[1]s --file tasks.db --handler mail", name),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.filter()
			if err == nil && (len(args) > 0) == (s.selectAll || f != (durable.Filter{})) {
				err = errors.New("give either IDs, or flags that select tasks")
			}
			ids := make([]string, len(args))
			for i, arg := range args {
				if err == nil {
					ids[i], err = unescapeID(arg)
				}
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				if len(ids) == 0 {
					f.State = state
					for info, err := range client.List(ctx, f) {
						if info.ID == "" && err != nil {
							return err
						}
						if !info.Paused && (state != 0 || info.State <= durable.Running) || name == "cancel" && info.Paused {
							ids = append(ids, info.ID)
						}
					}
				}
				if err := c.confirmChange(cmd, verb, len(ids)); err != nil {
					return err
				}
				outcomes, err := do(client, ctx, ids)
				return errors.Join(c.printOutcomes(cmd, ids, outcomes, len(args) > 0), err)
			})
		},
	}
	s.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&s.selectAll, "all", false, "all tasks that the command applies to")
	if verb != "" {
		cmd.Flags().BoolVarP(&c.skipConfirm, "yes", "y", false, "do not ask")
	}
	return cmd
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
