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

// A selection contains the flags that select tasks or runs.
type selection struct {
	state, handler, group, prefix, from, to, errorText string
	selectAll                                          bool
}

// addFlags adds flags that select tasks or runs by a time: when they are due, or when they
// have ended.
func (s *selection) addFlags(flags *pflag.FlagSet, what, by string) {
	flags.SortFlags = false
	flags.StringVar(&s.handler, "handler", "", what+" of this handler")
	flags.StringVar(&s.group, "group", "", what+" of this group")
	flags.StringVar(&s.prefix, "prefix", "", what+" whose ID has this prefix")
	flags.StringVar(&s.from, "from", "", what+" that "+by+" at or after this time")
	flags.StringVar(&s.to, "to", "", what+" that "+by+" before this time")
	flags.StringVar(&s.errorText, "error", "", what+" whose latest error contains this text")
}

const dueTime = "are due, or as dead letters died,"

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
	f.From, errs[1] = parseTime(s.from)
	f.To, errs[2] = parseTime(s.to)
	return f, errors.Join(errs[:]...)
}

// A pageFlags contains the flags that select a part of a list.
type pageFlags struct {
	limit int
	after string
}

func (p *pageFlags) addFlags(flags *pflag.FlagSet, limit int) {
	flags.IntVar(&p.limit, "limit", limit, "maximum number, up to 1000")
	flags.StringVar(&p.after, "after", "", "continue after the cursor that the previous list printed")
}

func (p *pageFlags) check() error {
	if p.limit < 1 || p.limit > 1000 {
		return fmt.Errorf("the limit must be from 1 to 1000, got %d", p.limit)
	}
	return nil
}

// printNext says how to continue a list.
func printNext(cmd *cobra.Command, what string, next durable.Cursor) {
	if next != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more %s: continue with --after %s\n", what, next)
	}
}

// taskJSON is the JSON form of a task. ID is escaped, so that the commands accept it as
// an argument.
type taskJSON struct {
	ID string `json:"id"`
	durable.Info
}

type pageJSON struct {
	Tasks []taskJSON     `json:"tasks"`
	Next  durable.Cursor `json:"next"`
}

func (c *sharedFlags) newListCommand() *cobra.Command {
	var s selection
	var p pageFlags
	var onlyIDs bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Lists tasks",
		Long:    "Lists the tasks that the flags select, ordered by state and time or, with --prefix, by ID.",
		Example: "  tickless tasks list --file tasks.db --state dead\n  tickless tasks list --file tasks.db --to 1h --limit 20",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := s.filter()
			if err = errors.Join(err, p.check()); err != nil {
				return cli.UsageError{Err: err}
			}
			return show(c, cmd, func(ctx context.Context, x target) (pageJSON, error) {
				page, err := x.Page(ctx, f, durable.Cursor(p.after), p.limit)
				v := pageJSON{make([]taskJSON, len(page.Tasks)), page.Next}
				for i, info := range page.Tasks {
					v.Tasks[i] = taskJSON{escapeText(info.ID), info}
				}
				return v, err
			}, func(v pageJSON) error {
				printNext(cmd, "tasks", v.Next)
				return printPage(cmd, v.Tasks, onlyIDs)
			})
		},
	}
	cmd.Flags().StringVar(&s.state, "state", "", "tasks that are pending, paused, running, dead or past")
	s.addFlags(cmd.Flags(), "tasks", dueTime)
	p.addFlags(cmd.Flags(), 100)
	cmd.Flags().BoolVar(&onlyIDs, "ids", false, "print only the IDs, one in a line, as other commands take them")
	return cmd
}

func printPage(cmd *cobra.Command, tasks []taskJSON, onlyIDs bool) error {
	if onlyIDs {
		for i := range tasks {
			fmt.Fprintln(cmd.OutOrStdout(), tasks[i].ID)
		}
		return nil
	}
	t := newTable(cmd, "ID", "STATE", "AT", "HANDLER", "ATTEMPTS", "LAST ERROR")
	for i := range tasks {
		info := &tasks[i].Info
		lastError := ""
		if n := len(info.Failures); n > 0 {
			lastError = shortLine(info.Failures[n-1].Error)
		}
		state := stateText(info)
		if info.Paused {
			state = "paused"
		}
		t.addRow(tasks[i].ID, state, formatTime(info.At), escapeText(info.Task.Handler), info.Attempts, lastError)
	}
	return t.flush()
}

func (c *sharedFlags) newGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "get ID",
		Short:   "Shows one task with all its details",
		Example: "  tickless tasks get --file tasks.db order-17",
		Args:    cli.One("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := unescapeID(args[0])
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return show(c, cmd, func(ctx context.Context, x target) (taskJSON, error) {
				info, err := x.Get(ctx, id)
				return taskJSON{escapeText(info.ID), info}, err
			}, func(v taskJSON) error { return printInfo(cmd, &v.Info) })
		},
	}
}

// stateText returns a task's state, or how a finished run ended.
func stateText(info *durable.Info) string {
	if info.Run != nil {
		return endText(info.Run)
	}
	return info.State.String()
}

// endText says how a run ended.
func endText(r *durable.Run) string {
	if r.Done {
		return "done"
	}
	return "failed"
}

func printInfo(cmd *cobra.Command, info *durable.Info) error {
	t := newTable(cmd)
	task := &info.Task
	state := stateText(info)
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
	at := "at"
	if info.State == durable.Dead {
		at = "died"
	}
	t.addRow(at, formatTime(info.At))
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
		what := fmt.Sprintf("attempt %d", f.Attempt)
		if f.HandBacks > 0 {
			what = fmt.Sprintf("handed back %d times, at last", f.HandBacks)
		}
		if !f.Time.IsZero() {
			what = formatTime(f.Time) + ", " + what
		}
		t.addRow("failure", what+": "+escapeText(hideSecrets(f.Error)))
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
			type row struct {
				name  string
				value any
			}
			c.location.ReadOnly = true
			return c.withTasks(cmd, false, func(ctx context.Context, x target) error {
				health, st, err := x.summary(ctx)
				if err != nil {
					return err
				}
				rows := []row{{"store", health.Store}, {"warnings", strings.Join(health.Warnings, "; ")},
					{"pending", st.Pending}, {"overdue", st.Overdue}, {"unknown", st.Unknown}, {"late_seconds", st.Late.Round(time.Millisecond).Seconds()},
					{"running", st.Running}, {"dead", st.Dead}, {"past", st.Past}, {"astray", st.Astray}, {"paused_shards", st.Paused},
					{"claimed", st.Claimed}, {"done", st.Done}, {"retried", st.Retried}, {"died", st.Died}, {"crashed", st.Crashed},
					{"handed_back", st.Released}, {"refused", st.Refused}, {"cancelled", st.Cancelled}}
				if c, isStore := x.(local); isStore {
					rows = append(rows, row{"shards", c.Store().Shards()})
				}
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
