package tasks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
)

func (c *sharedFlags) newExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain ID",
		Short:   "Says why a task does not run",
		Example: "  tickless tasks explain --file tasks.db order-17",
		Args:    oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := unescapeID(args[0])
			if err != nil {
				return cli.UsageError{Err: err}
			}
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				x, err := client.Explain(ctx, id)
				switch {
				case err != nil:
					return err
				case c.asJSON:
					return figures.PrintJSON(cmd.OutOrStdout(), x)
				}
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
	var after string
	limit := 100
	cmd := &cobra.Command{
		Use:     "runs [KEY]",
		Short:   "Lists finished runs that are kept, the latest first",
		Example: "  tickless tasks runs --file tasks.db report\n  tickless tasks runs --file tasks.db --handler mail --from -1h --error timeout",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.filter()
			if err == nil && len(args) > 1 {
				err = fmt.Errorf("one key at most, got %d", len(args))
			}
			if err == nil && (limit < 1 || limit > 1000) {
				err = fmt.Errorf("the limit must be from 1 to 1000, got %d", limit)
			}
			ids, err2 := unescapeIDs(args)
			if err == nil {
				err = err2
			}
			if err == nil && len(ids) > 0 && f != (durable.Filter{}) {
				err = fmt.Errorf("give a key, or flags that select runs")
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				var page durable.RunsPage
				if len(ids) > 0 {
					page.Runs, err = client.Runs(ctx, ids[0])
					page.Runs = page.Runs[:min(limit, len(page.Runs))]
				} else {
					page, err = client.RunsPage(ctx, f, durable.Cursor(after), limit)
				}
				switch {
				case err != nil:
					return err
				case c.asJSON:
					return figures.PrintJSON(cmd.OutOrStdout(), page)
				case page.Next != "":
					fmt.Fprintf(cmd.ErrOrStderr(), "There are more runs: continue with --after %s\n", page.Next)
				}
				t := newTable(cmd, "ENDED", "KEY", "HANDLER", "END", "DUE", "ATTEMPTS", "RESULT OR ERROR")
				for i := range page.Runs {
					r := &page.Runs[i]
					end, text := "done", string(r.Result)
					if !r.Done {
						end = "failed"
					}
					if n := len(r.Failures); n > 0 && !r.Done {
						text = r.Failures[n-1].Error
					}
					t.addRow(formatTime(r.Ended), escapeText(r.Key), escapeText(r.Handler), end, formatTime(r.Due), r.Attempts, shortLine(hideSecrets(text)))
				}
				return t.flush()
			})
		},
	}
	s.addRunFlags(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", limit, "maximum number of runs, up to 1000")
	cmd.Flags().StringVar(&after, "after", "", "continue after the cursor that the previous list printed")
	return cmd
}

func (c *sharedFlags) newUpcomingCommand() *cobra.Command {
	period := time.Hour
	limit := 1000
	cmd := &cobra.Command{
		Use:     "upcoming",
		Short:   "Lists what runs next, with each repetition",
		Example: "  tickless tasks upcoming --file tasks.db --for 24h",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if period <= 0 || limit < 1 || limit > 1000 {
				return cli.UsageError{Err: fmt.Errorf("--for must be positive, and the limit from 1 to 1000, got %v and %d", period, limit)}
			}
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				runs, err := client.Upcoming(ctx, time.Now().Add(period), limit)
				switch {
				case err != nil:
					return err
				case c.asJSON:
					return figures.PrintJSON(cmd.OutOrStdout(), map[string]any{"runs": runs, "complete": len(runs) < limit})
				}
				t := newTable(cmd, "DUE", "KEY", "HANDLER")
				for _, r := range runs {
					t.addRow(formatTime(r.Due), escapeText(r.Key), escapeText(r.Handler))
				}
				if err := t.flush(); err != nil {
					return err
				}
				atLeast := ""
				if len(runs) == limit {
					atLeast = "at least "
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s%d runs within %v\n", atLeast, len(runs), period)
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&period, "for", period, "how far to look ahead")
	cmd.Flags().IntVar(&limit, "limit", limit, "maximum number of runs, up to 1000")
	return cmd
}

func (c *sharedFlags) newWorkersCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "workers",
		Short:   "Lists the workers, and what they run",
		Example: "  tickless tasks workers --redis redis://localhost:6379",
		Args:    cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				workers, err := client.Workers(ctx)
				switch {
				case err != nil:
					return err
				case c.asJSON:
					return figures.PrintJSON(cmd.OutOrStdout(), workers)
				}
				t := newTable(cmd, "WORKER", "HOST", "PID", "VERSION", "STARTED", "CONTACT", "HANDLER", "RUNNING", "PLACES")
				for i := range workers {
					w := &workers[i]
					contact := formatTime(w.Contact)
					if w.Lost {
						contact += " (lost)"
					}
					t.addRow(w.ID, escapeText(w.Host), w.PID, escapeText(w.Version), formatTime(w.Started), contact, "all", len(w.Running), w.Places)
					for _, h := range w.Handlers {
						places := strconv.Itoa(h.Places)
						if h.Places == 0 {
							places = "-"
						}
						t.addRow("", "", "", "", "", "", escapeText(h.Handler), h.Running, places)
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
			c.location.ReadOnly = true
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				limits, err := client.Limits(ctx)
				if err != nil {
					return err
				}
				paused, err := client.PausedHandlers(ctx)
				if err != nil {
					return err
				}
				byHandler := make(map[string]*handlerLimit)
				get := func(handler string) *handlerLimit {
					if byHandler[handler] == nil {
						byHandler[handler] = &handlerLimit{Handler: handler}
					}
					return byHandler[handler]
				}
				for h, l := range limits {
					x := get(h)
					x.Concurrency, x.Rate, x.GroupConcurrency, x.GroupRate = l.Concurrency, l.Rate, l.GroupConcurrency, l.GroupRate
				}
				for h, p := range paused {
					get(h).PausedSince, get(h).Note = &p.Since, p.Note
				}
				list := []*handlerLimit{}
				for _, h := range slices.Sorted(maps.Keys(byHandler)) {
					list = append(list, byHandler[h])
				}
				if c.asJSON {
					return figures.PrintJSON(cmd.OutOrStdout(), list)
				}
				t := newTable(cmd, "HANDLER", "CONCURRENCY", "RATE", "OF A GROUP", "RATE OF A GROUP", "PAUSED SINCE", "NOTE")
				for _, l := range list {
					since := ""
					if l.PausedSince != nil {
						since = formatTime(*l.PausedSince)
					}
					t.addRow(escapeText(l.Handler), orDash(l.Concurrency > 0, l.Concurrency), orDash(l.Rate > 0, l.Rate), orDash(l.GroupConcurrency > 0, l.GroupConcurrency), orDash(l.GroupRate > 0, l.GroupRate), since, shortLine(l.Note))
				}
				return t.flush()
			})
		},
	}
}

func orDash(given bool, value any) any {
	if given {
		return value
	}
	return "-"
}

func (c *sharedFlags) newLimitCommand() *cobra.Command {
	var l durable.Limit
	var remove bool
	cmd := &cobra.Command{
		Use:   "limit HANDLER",
		Short: "Sets or removes the limit of a handler over all workers",
		Long: `Sets the limit of a handler over all workers: how many tasks run at a time, and how many
start in a second on average, in all and of each group of tasks. What is not given is not limited. A program that sets limits
when it starts replaces them.`,
		Example: "  tickless tasks limit --file tasks.db mail --concurrency 10 --rate 50\n  tickless tasks limit --file tasks.db mail --remove",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" || remove == (l != durable.Limit{}) {
				return cli.UsageError{Err: fmt.Errorf("give one handler, and --concurrency, --rate, --group-concurrency, --group-rate or --remove")}
			}
			handler, err := unescapeID(args[0])
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				return client.SetLimit(ctx, handler, l)
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
