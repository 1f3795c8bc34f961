package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
)

// A selection contains the flags that select tasks.
type selection struct {
	state, handler, group, prefix, dueFrom, dueBefore, errorText string
	selectAll                                                    bool
}

func (s *selection) addFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&s.handler, "handler", "", "tasks of this handler")
	flags.StringVar(&s.group, "group", "", "tasks of this group")
	flags.StringVar(&s.prefix, "prefix", "", "tasks whose ID has this prefix")
	flags.StringVar(&s.dueFrom, "from", "", "tasks that are due at or after this time; for dead letters, the time of death counts")
	flags.StringVar(&s.dueBefore, "to", "", "tasks that are due before this time; for dead letters, the time of death counts")
	flags.StringVar(&s.errorText, "error", "", "tasks whose latest error contains this text")
}

// addRunFlags adds the flags that select finished runs.
func (s *selection) addRunFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&s.handler, "handler", "", "runs of this handler")
	flags.StringVar(&s.group, "group", "", "runs of tasks of this group")
	flags.StringVar(&s.prefix, "prefix", "", "runs whose key has this prefix")
	flags.StringVar(&s.dueFrom, "from", "", "runs that ended at or after this time")
	flags.StringVar(&s.dueBefore, "to", "", "runs that ended before this time")
	flags.StringVar(&s.errorText, "error", "", "runs whose latest error contains this text")
}

func (s *selection) filter() (f durable.Filter, err error) {
	switch {
	case s.state == "paused":
		f.State, f.Paused = durable.Pending, true
	case s.state != "":
		if err := f.State.UnmarshalText([]byte(s.state)); err != nil {
			return f, fmt.Errorf("the state must be pending, paused, running, dead or past, got %q", s.state)
		}
	}
	f.Handler, f.Group, f.Error = s.handler, s.group, s.errorText
	var errs [3]error
	f.Prefix, errs[0] = unescapeID(s.prefix)
	f.From, errs[1] = parseTime(s.dueFrom)
	f.To, errs[2] = parseTime(s.dueBefore)
	return f, errors.Join(errs[:]...)
}

// taskJSON is the JSON form of a task. ID is escaped, so that the commands accept it as
// an argument.
type taskJSON struct {
	ID string `json:"id"`
	durable.Info
}

func (c *sharedFlags) newListCommand() *cobra.Command {
	var s selection
	var after string
	var onlyIDs bool
	limit := 100
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Lists tasks",
		Long:    "Lists the tasks that the flags select, ordered by state and time or, with --prefix, by ID.",
		Example: "  tickless tasks list --file tasks.db --state dead\n  tickless tasks list --file tasks.db --to 1h --limit 20",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := s.filter()
			if err == nil && (limit < 1 || limit > 1000) {
				err = fmt.Errorf("the limit must be from 1 to 1000, got %d", limit)
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				page, err := client.Page(ctx, f, durable.Cursor(after), limit)
				if err != nil {
					return err
				}
				return c.printPage(cmd, &page, onlyIDs)
			})
		},
	}
	cmd.Flags().StringVar(&s.state, "state", "", "tasks that are pending, paused, running, dead or past")
	s.addFlags(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", limit, "maximum number of tasks, up to 1000")
	cmd.Flags().BoolVar(&onlyIDs, "ids", false, "print only the IDs, one in a line, as other commands take them")
	cmd.Flags().StringVar(&after, "after", "", "continue after the cursor that the previous list printed")
	return cmd
}

func (c *sharedFlags) printPage(cmd *cobra.Command, p *durable.Page, onlyIDs bool) error {
	if c.asJSON {
		jsonTasks := make([]taskJSON, len(p.Tasks))
		for i, info := range p.Tasks {
			jsonTasks[i] = taskJSON{escapeText(info.ID), info}
		}
		return figures.PrintJSON(cmd.OutOrStdout(), map[string]any{"tasks": jsonTasks, "next": p.Next})
	}
	if p.Next != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more tasks: continue with --after %s\n", p.Next)
	}
	if onlyIDs {
		for i := range p.Tasks {
			fmt.Fprintln(cmd.OutOrStdout(), escapeText(p.Tasks[i].ID))
		}
		return nil
	}
	t := newTable(cmd, "ID", "STATE", "AT", "HANDLER", "ATTEMPTS", "LAST ERROR")
	for _, info := range p.Tasks {
		lastError := ""
		if n := len(info.Failures); n > 0 {
			lastError = shortLine(info.Failures[n-1].Error)
		}
		state := info.State.String()
		if info.Paused {
			state = "paused"
		}
		t.addRow(escapeText(info.ID), state, formatTime(info.At), escapeText(info.Task.Handler), info.Attempts, lastError)
	}
	return t.flush()
}

func (c *sharedFlags) newGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "get ID",
		Short:   "Shows one task with all its details",
		Example: "  tickless tasks get --file tasks.db order-17",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.UsageError{Err: fmt.Errorf("one ID is required, got %d", len(args))}
			}
			id, err := unescapeID(args[0])
			if err != nil {
				return cli.UsageError{Err: err}
			}
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				info, err := client.Get(ctx, id)
				switch {
				case err != nil:
					return err
				case c.asJSON:
					return figures.PrintJSON(cmd.OutOrStdout(), taskJSON{escapeText(info.ID), info})
				}
				return printInfo(cmd, &info)
			})
		},
	}
}

func printInfo(cmd *cobra.Command, info *durable.Info) error {
	t := newTable(cmd)
	task := &info.Task
	state := info.State.String()
	if info.Stopping {
		state += ", was asked to stop"
	}
	if info.Paused {
		state += ", is paused"
	}
	if info.Following {
		state += ", runs again at " + formatTime(info.Next)
	}
	t.addRow("id", escapeText(info.ID))
	t.addRow("state", state)
	t.addRow("at", formatTime(info.At))
	t.addRow("due", formatTime(info.Due))
	t.addRow("handler", escapeText(task.Handler))
	if task.Group != "" {
		t.addRow("group", escapeText(task.Group))
	}
	if info.Worker != "" {
		t.addRow("worker", info.Worker)
	}
	t.addRow("attempts", fmt.Sprintf("%d, %d crashed", info.Attempts, info.Crashes))
	switch {
	case task.Every > 0:
		t.addRow("every", task.Every)
	case task.Cron != "":
		t.addRow("cron", escapeText(task.Cron+" "+task.Zone))
	case task.Schedule != "":
		t.addRow("schedule", escapeText(task.Schedule))
	}
	for key, value := range task.Headers {
		t.addRow("header", escapeText(key)+": "+shortLine(hideSecrets(value)))
	}
	t.addRow("body", fmt.Sprintf("%d bytes: %s", len(task.Body), shortLine(hideSecrets(string(task.Body)))))
	if r := info.Run; r != nil {
		t.addRow("ended", formatTime(r.Ended))
		t.addRow("result", shortLine(hideSecrets(string(r.Result))))
	}
	for _, f := range info.Failures {
		if f.HandBacks > 0 {
			t.addRow("handed back", fmt.Sprintf("%s, %d times, at last: %s", formatTime(f.Time), f.HandBacks, escapeText(hideSecrets(f.Error))))
			continue
		}
		t.addRow("failure", fmt.Sprintf("%s, attempt %d: %s", formatTime(f.Time), f.Attempt, escapeText(hideSecrets(f.Error))))
	}
	return t.flush()
}

func (c *sharedFlags) newStatsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Shows how many tasks there are, by state and outcome",
		Example: "  tickless tasks stats --file tasks.db",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				health, err := client.Check(ctx)
				if err != nil && !errors.Is(err, durable.ErrUnsafe) {
					return err
				}
				st, err := client.Stats(ctx)
				if err != nil {
					return err
				}
				rows := []struct {
					name  string
					value any
				}{{"store", health.Store}, {"warnings", strings.Join(health.Warnings, "; ")},
					{"pending", st.Pending}, {"overdue", st.Overdue}, {"unknown", st.Unknown}, {"late_seconds", st.Late.Round(time.Millisecond).Seconds()},
					{"running", st.Running}, {"dead", st.Dead}, {"past", st.Past}, {"astray", st.Astray}, {"shards", client.Store().Shards()}, {"paused_shards", st.Paused},
					{"claimed", st.Claimed}, {"done", st.Done}, {"retried", st.Retried}, {"died", st.Died}, {"crashed", st.Crashed},
					{"handed_back", st.Released}, {"refused", st.Refused}, {"cancelled", st.Cancelled}}
				t := newTable(cmd)
				jsonObject := make(map[string]any)
				for _, r := range rows {
					t.addRow(r.name, r.value)
					jsonObject[r.name] = r.value
				}
				if c.asJSON {
					return figures.PrintJSON(cmd.OutOrStdout(), jsonObject)
				}
				return t.flush()
			})
		},
	}
}
