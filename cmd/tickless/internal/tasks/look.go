package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
)

func (c *sharedFlags) newExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain ID",
		Short:   "Says why a task does not run",
		Example: "  tickless tasks explain --file tasks.db order-17",
		Args:    cli.One("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := unescapeID(args[0])
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return show(c, cmd, func(ctx context.Context, x target) (durable.Explanation, error) { return x.Explain(ctx, id) }, func(x durable.Explanation) error {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is %v\n", escapeText(x.ID), x.State)
				for _, r := range x.Reasons {
					text := r.Text
					if r.Note != "" {
						text += ": " + r.Note
					}
					if !r.AsOf.IsZero() {
						text += ", as of " + formatTime(r.AsOf)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "- %s\n", escapeText(hideSecrets(text)))
					for _, h := range r.Holders {
						fmt.Fprintf(cmd.OutOrStdout(), "    %s runs on %s since %s\n", escapeText(h.ID), h.Worker, formatTime(h.Since))
					}
				}
				return nil
			})
		},
	}
}

func (c *sharedFlags) newRunsCommand() *cobra.Command {
	var s selection
	var p pageFlags
	cmd := &cobra.Command{
		Use:     "runs [KEY]",
		Short:   "Lists finished runs that are kept, the latest first",
		Example: "  tickless tasks runs --file tasks.db report\n  tickless tasks runs --file tasks.db --handler mail --from -1h --error timeout",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.filter()
			ids, err2 := unescapeIDs(args)
			err = errors.Join(err, err2, p.check())
			if err == nil && (len(ids) > 1 || len(ids) > 0 && (f != (durable.Filter{}) || p.after != "")) {
				err = errors.New("give a key, or flags that select runs")
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return show(c, cmd, func(ctx context.Context, x target) (page durable.RunsPage, err error) {
				if len(ids) == 0 {
					return x.RunsPage(ctx, f, durable.Cursor(p.after), p.limit)
				}
				page.Runs, err = x.Runs(ctx, ids[0])
				page.Runs = page.Runs[:min(p.limit, len(page.Runs))]
				return page, err
			}, func(page durable.RunsPage) error {
				printNext(cmd, "runs", page.Next)
				t := newTable(cmd, "ENDED", "KEY", "HANDLER", "END", "DUE", "ATTEMPTS", "RESULT OR ERROR")
				for i := range page.Runs {
					r := &page.Runs[i]
					end, text := endText(r), string(r.Result)
					if n := len(r.Failures); n > 0 && !r.Done {
						text = r.Failures[n-1].Error
					}
					t.addRow(formatTime(r.Ended), escapeText(r.Key), escapeText(r.Handler), end, formatTime(r.Due), r.Attempts, shortLine(hideSecrets(text)))
				}
				return t.flush()
			})
		},
	}
	s.addFlags(cmd.Flags(), "runs", "ended")
	p.addFlags(cmd.Flags(), 100)
	return cmd
}

func (c *sharedFlags) newUpcomingCommand() *cobra.Command {
	period := time.Hour
	p := pageFlags{limit: 1000}
	type upcoming struct {
		Runs     []durable.UpcomingRun `json:"runs"`
		Complete bool                  `json:"complete"`
	}
	cmd := &cobra.Command{
		Use:     "upcoming",
		Short:   "Lists what runs next, with each repetition",
		Example: "  tickless tasks upcoming --file tasks.db --for 24h",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := p.check()
			if period <= 0 {
				err = fmt.Errorf("--for must be positive, got %v", period)
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return show(c, cmd, func(ctx context.Context, x target) (upcoming, error) {
				runs, err := x.Upcoming(ctx, time.Now().Add(period), p.limit)
				return upcoming{runs, len(runs) < p.limit}, err
			}, func(x upcoming) error {
				t := newTable(cmd, "DUE", "KEY", "HANDLER")
				for _, r := range x.Runs {
					t.addRow(formatTime(r.Due), escapeText(r.Key), escapeText(r.Handler))
				}
				if err := t.flush(); err != nil {
					return err
				}
				atLeast := ""
				if !x.Complete {
					atLeast = "at least "
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s%d runs within %v\n", atLeast, len(x.Runs), period)
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&period, "for", period, "how far to look ahead")
	cmd.Flags().IntVar(&p.limit, "limit", p.limit, "maximum number of runs, up to 1000")
	return cmd
}

func (c *sharedFlags) newWorkersCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "workers",
		Short:   "Lists the workers, and what they run",
		Example: "  tickless tasks workers --redis redis://localhost:6379",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(c, cmd, func(ctx context.Context, x target) ([]durable.WorkerInfo, error) { return x.Workers(ctx) }, func(workers []durable.WorkerInfo) error {
				t := newTable(cmd, "WORKER", "HOST", "PID", "VERSION", "STARTED", "CONTACT", "HANDLER", "RUNNING", "PLACES")
				for i := range workers {
					w := &workers[i]
					contact := formatTime(w.Contact)
					if w.Lost {
						contact += " (lost)"
					}
					t.addRow(w.ID, escapeText(w.Host), w.PID, escapeText(w.Version), formatTime(w.Started), contact, "all", len(w.Running), w.Places)
					for _, h := range w.Handlers {
						t.addRow("", "", "", "", "", "", escapeText(h.Handler), h.Running, orDash(h.Places))
					}
				}
				return t.flush()
			})
		},
	}
}

// A handlerLimit is what the commands limits and limit print.
type handlerLimit struct {
	Handler          string     `json:"handler"`
	Concurrency      int        `json:"concurrency,omitempty"`
	Rate             float64    `json:"rate,omitempty"`
	GroupConcurrency int        `json:"group_concurrency,omitempty"`
	GroupRate        float64    `json:"group_rate,omitempty"`
	PausedSince      *time.Time `json:"paused_since,omitempty"`
	Note             string     `json:"note,omitempty"`
}

func (c *sharedFlags) newLimitsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "limits",
		Short:   "Lists the limits of handlers over all workers, and the paused handlers",
		Example: "  tickless tasks limits --file tasks.db",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(c, cmd, func(ctx context.Context, x target) ([]*handlerLimit, error) { return x.limits(ctx) }, func(list []*handlerLimit) error {
				t := newTable(cmd, "HANDLER", "CONCURRENCY", "RATE", "OF A GROUP", "RATE OF A GROUP", "PAUSED SINCE", "NOTE")
				for _, l := range list {
					since := ""
					if l.PausedSince != nil {
						since = formatTime(*l.PausedSince)
					}
					t.addRow(escapeText(l.Handler), orDash(l.Concurrency), orDash(l.Rate), orDash(l.GroupConcurrency), orDash(l.GroupRate), since, shortLine(l.Note))
				}
				return t.flush()
			})
		},
	}
}

// orDash formats a limit, of which 0 means none.
func orDash[N int | float64](n N) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

func (c *sharedFlags) newLimitCommand() *cobra.Command {
	var l durable.Limit
	var remove bool
	cmd := &cobra.Command{
		Use:   "limit HANDLER",
		Short: "Sets or removes the limit of a handler over all workers",
		Long: `Sets the limit of a handler over all workers: how many tasks run at a time, and how many
start in a second on average, in all and of each group of tasks. What is not given stays, and
0 means no limit. A program that sets limits when it starts replaces them.`,
		Example: "  tickless tasks limit --file tasks.db mail --concurrency 10 --rate 50\n  tickless tasks limit --file tasks.db mail --remove",
		Args:    cli.One("handler"),
		RunE: func(cmd *cobra.Command, args []string) error {
			handler, err := unescapeID(args[0])
			isSet := cmd.Flags().Changed
			if err == nil && remove == (isSet("concurrency") || isSet("rate") || isSet("group-concurrency") || isSet("group-rate")) {
				err = errors.New("give --concurrency, --rate, --group-concurrency, --group-rate or --remove")
			}
			if x := l.Rate + l.GroupRate; err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) { // JSON has no such number
				err = fmt.Errorf("--rate and --group-rate are numbers of tasks a second, got %g and %g", l.Rate, l.GroupRate)
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withTasks(cmd, false, func(ctx context.Context, x target) error {
				before := &handlerLimit{}
				list, err := x.limits(ctx)
				if err != nil {
					return err
				}
				if i := slices.IndexFunc(list, func(l *handlerLimit) bool { return l.Handler == handler }); i >= 0 && !remove {
					before = list[i]
				}
				if !isSet("concurrency") {
					l.Concurrency = before.Concurrency
				}
				if !isSet("rate") {
					l.Rate = before.Rate
				}
				if !isSet("group-concurrency") {
					l.GroupConcurrency = before.GroupConcurrency
				}
				if !isSet("group-rate") {
					l.GroupRate = before.GroupRate
				}
				return x.SetLimit(ctx, handler, l)
			})
		},
	}
	cmd.Flags().IntVar(&l.Concurrency, "concurrency", 0, "at most this many tasks at a time")
	cmd.Flags().Float64Var(&l.Rate, "rate", 0, "at most this many tasks a second")
	cmd.Flags().IntVar(&l.GroupConcurrency, "group-concurrency", 0, "at most this many tasks of a group at a time")
	cmd.Flags().Float64Var(&l.GroupRate, "group-rate", 0, "at most this many tasks of a group a second")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the limit")
	return cmd
}
