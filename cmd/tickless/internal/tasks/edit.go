package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
)

// taskFlags are the flags that describe a task and its time.
type taskFlags struct {
	handler, group, body, bodyFile, cron, zone, start, end, missed, at string
	headers                                                            []string
	every, timeout, unique, keepFor, missedAfter, after                time.Duration
	maxAttempts, keepRuns                                              int
}

func (x *taskFlags) addFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&x.handler, "handler", "", "name of the handler that runs the task")
	flags.StringVar(&x.group, "group", "", "group of the task, such as a tenant, for the handler's limits by group")
	flags.StringVar(&x.body, "body", "", "body, as text")
	flags.StringVar(&x.bodyFile, "body-file", "", "file with the body, or - for standard input")
	flags.StringArrayVar(&x.headers, "header", nil, "a header, as NAME=VALUE; may be repeated")
	flags.StringVar(&x.at, "at", "", "when it runs, as a time or now")
	flags.DurationVar(&x.after, "after", 0, "when it runs, from now on")
	flags.StringVar(&x.cron, "cron", "", `repeat at the times of a cron spec, such as "0 9 * * 1-5"`)
	flags.StringVar(&x.zone, "zone", "", "time zone of the cron spec, such as Europe/Berlin (default UTC)")
	flags.DurationVar(&x.every, "every", 0, "repeat with this period")
	flags.StringVar(&x.start, "start", "", "a repeating task does not run before this time")
	flags.StringVar(&x.end, "end", "", "a repeating task does not run after this time")
	flags.IntVar(&x.maxAttempts, "max-attempts", 0, "attempts before the task is a dead letter (default: the worker's)")
	flags.DurationVar(&x.timeout, "timeout", 0, "time limit of an attempt (default: the worker's)")
	flags.IntVar(&x.keepRuns, "keep-runs", 0, "keep this many finished runs")
	flags.DurationVar(&x.keepFor, "keep-for", 0, "keep finished runs for this long")
	flags.DurationVar(&x.unique, "unique", 0, "the key stays taken for this long after success")
	flags.StringVar(&x.missed, "missed", "latest", "late runs: latest, fire or dead")
	flags.DurationVar(&x.missedAfter, "missed-after", 0, "with --missed dead: how late a run may begin")
}

// apply sets the fields of t whose flags are given.
func (x *taskFlags) apply(flags *pflag.FlagSet, in io.Reader, t *durable.Task) (err error) {
	given := func(names ...string) bool {
		for _, name := range names {
			if flags.Changed(name) {
				return true
			}
		}
		return false
	}
	if given("handler") {
		t.Handler = x.handler
	}
	if given("group") {
		t.Group = x.group
	}
	switch {
	case given("body") && given("body-file"):
		return errors.New("give --body or --body-file, not both")
	case given("body"):
		t.Body = []byte(x.body)
	case x.bodyFile == "-":
		t.Body, err = io.ReadAll(io.LimitReader(in, durable.MaxTask+1))
	case given("body-file"):
		t.Body, err = os.ReadFile(x.bodyFile)
	}
	if err != nil {
		return err
	}
	if given("header") {
		t.Headers = make(map[string]string)
	}
	for _, h := range x.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return fmt.Errorf("the header %q is not NAME=VALUE", h)
		}
		t.Headers[name] = value
	}
	if given("every") && x.every <= 0 || given("cron") && x.cron == "" {
		return errors.New("--every must be positive, and --cron must not be empty")
	}
	if given("cron", "every") {
		t.Cron, t.Every, t.Schedule = x.cron, x.every, ""
		if !given("zone") && x.cron == "" {
			t.Zone = ""
		}
	}
	if given("zone") {
		t.Zone = x.zone
	}
	for name, to := range map[string]struct {
		text string
		time *time.Time
	}{"start": {x.start, &t.Start}, "end": {x.end, &t.End}} {
		if given(name) {
			if *to.time, err = parseTime(to.text); err != nil {
				return err
			}
		}
	}
	if given("max-attempts") {
		t.MaxAttempts = x.maxAttempts
	}
	if given("timeout") {
		t.Timeout = x.timeout
	}
	if given("keep-runs") {
		t.Retention.Runs = x.keepRuns
	}
	if given("keep-for") {
		t.Retention.For = x.keepFor
	}
	if given("unique") {
		t.Unique = x.unique
	}
	if given("missed") {
		var ok bool
		if t.Missed, ok = missedNames[x.missed]; !ok {
			return fmt.Errorf("--missed must be latest, fire or dead, got %q", x.missed)
		}
		t.MissedAfter = 0
	}
	if given("missed-after") {
		t.MissedAfter = x.missedAfter
	}
	return nil
}

var missedNames = map[string]durable.Missed{"latest": durable.LatestMissed, "fire": durable.FireMissed, "dead": durable.DeadMissed}

// when returns the time that the flags give. given is false if they give none.
func (x *taskFlags) when(flags *pflag.FlagSet) (w durable.When, given bool, err error) {
	switch {
	case flags.Changed("at") && flags.Changed("after"):
		return w, false, errors.New("give --at or --after, not both")
	case flags.Changed("after"):
		return durable.After(x.after), true, nil
	case flags.Changed("at"):
		at, err := parseTime(x.at)
		if err == nil && at.IsZero() {
			err = errors.New("the time of --at is empty")
		}
		return durable.At(at), true, err
	}
	return w, false, nil
}

// repeats reports whether a task repeats.
func repeats(t *durable.Task) bool { return t.Every > 0 || t.Cron != "" || t.Schedule != "" }

func (c *sharedFlags) newAddCommand() *cobra.Command {
	var x taskFlags
	var replace, paused bool
	cmd := &cobra.Command{
		Use:   "add KEY",
		Short: "Schedules a task",
		Long: `Schedules a task: at once, with --at or --after at a time, and with --cron or --every
again and again. If the key has a task already, nothing changes, and the exit code is 1;
--replace replaces it.`,
		Example: `  tickless tasks add --file tasks.db order-17 --handler mail --body '{"to":"a@b.example"}' --after 1h
  tickless tasks add --redis redis://localhost:6379 report --handler report --cron "0 9 * * 1-5" --zone Europe/Berlin`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := unescapeID(args[0])
			t := durable.Task{Key: key}
			if err == nil && key == "" {
				err = errors.New("the key is empty")
			}
			if err == nil {
				err = x.apply(cmd.Flags(), cmd.InOrStdin(), &t)
			}
			w, given, whenErr := x.when(cmd.Flags())
			if err = errors.Join(err, whenErr); err != nil {
				return cli.UsageError{Err: err}
			}
			switch {
			case given:
			case repeats(&t):
				w = durable.Next()
			default:
				w = durable.After(0)
			}
			opts := []durable.ScheduleOption{durable.OnlyNew()}
			if replace {
				opts = nil
			}
			if paused {
				opts = append(opts, durable.Paused())
			}
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				out, err := client.Schedule(ctx, t, w, opts...)
				if err == nil && out == durable.Kept {
					err = fmt.Errorf("%s: the key has a task already, or was used within its --unique: nothing changed", escapeText(key))
				}
				return c.printOutcome(cmd, key, out, err)
			})
		},
	}
	x.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the key's task if there is one")
	cmd.Flags().BoolVar(&paused, "paused", false, "the task waits until it is resumed")
	return cmd
}

func (c *sharedFlags) newChangeTaskCommand() *cobra.Command {
	var x taskFlags
	cmd := &cobra.Command{
		Use:   "change KEY",
		Short: "Changes a task: what the flags give, and nothing else",
		Long: `Changes a task: what the flags give, and nothing else. A run of a repeating task that is
due, being retried or running stays, with its time; only what follows changes. If somebody
else changes the task meanwhile, nothing changes, and the exit code is 1.`,
		Example: `  tickless tasks change --file tasks.db report --cron "0 8 * * 1-5"
  tickless tasks change --file tasks.db order-17 --at 2026-12-24T18:00:00Z`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := unescapeID(args[0])
			w, given, whenErr := x.when(cmd.Flags())
			if err = errors.Join(err, whenErr); err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withClient(cmd, func(ctx context.Context, client *durable.Client) error {
				info, err := client.Get(ctx, key)
				if err != nil {
					return err
				}
				t := info.Task
				if info.NextTask != nil {
					t = *info.NextTask
				}
				if err := x.apply(cmd.Flags(), cmd.InOrStdin(), &t); err != nil {
					return cli.UsageError{Err: err}
				}
				switch {
				case info.State >= durable.Dead:
					return fmt.Errorf("%s is %v: requeue or add it", escapeText(key), info.State)
				case given:
				case repeats(&t):
					w = durable.Next()
				case info.State == durable.Running:
					return fmt.Errorf("%s is running: say with --at or --after when it runs again", escapeText(key))
				case !info.At.IsZero():
					w = durable.At(info.At)
				}
				out, err := client.Schedule(ctx, t, w, durable.IfVersion(info.Version))
				if err == nil && out == durable.Changed {
					err = fmt.Errorf("%s has changed meanwhile: look at it and try again", escapeText(key))
				}
				return c.printOutcome(cmd, key, out, err)
			})
		},
	}
	x.addFlags(cmd.Flags())
	return cmd
}

// oneID refuses all but one argument.
func oneID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.UsageError{Err: fmt.Errorf("one ID is required, got %d", len(args))}
	}
	return nil
}

// printOutcome prints what a command did with a task, unless it failed.
func (c *sharedFlags) printOutcome(cmd *cobra.Command, id string, out durable.Outcome, err error) error {
	if err != nil {
		return err
	}
	return c.printOutcomes(cmd, []string{id}, []durable.Outcome{out}, true)
}
