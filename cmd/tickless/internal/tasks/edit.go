package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
)

// taskFlags are the flags that describe a task and its time.
type taskFlags struct {
	handler, group, call, method, body, bodyFile, cron, zone, start, end, missed, at string
	headers                                                                          []string
	every, timeout, unique, keepFor, missedAfter, after                              time.Duration
	maxAttempts, keepRuns                                                            int
}

func (x *taskFlags) addFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&x.handler, "handler", "", "name of the handler that runs the task")
	flags.StringVar(&x.group, "group", "", "group of the task, such as a tenant, for the handler's limits by group")
	flags.StringVar(&x.call, "call", "", "URL that is called: --body and --header are those of the request")
	flags.StringVar(&x.method, "method", "", "method of the request (default POST)")
	flags.StringVar(&x.body, "body", "", "body, as text")
	flags.StringVar(&x.bodyFile, "body-file", "", "file with the body, or - for standard input")
	flags.StringArrayVar(&x.headers, "header", nil, "a header, as NAME=VALUE; may be repeated; these replace all headers")
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

// apply sets the fields of t whose flags are given. ofService says that t is a service's task.
func (x *taskFlags) apply(flags *pflag.FlagSet, in io.Reader, t *durable.Task, ofService bool) (err error) {
	given := func(names ...string) bool { return slices.ContainsFunc(names, flags.Changed) }
	if given("handler") {
		t.Handler = x.handler
	}
	if given("group") {
		t.Group = x.group
	}
	isCall := given("call", "method") || ofService
	switch {
	case isCall && given("call", "method", "body", "body-file", "header"):
		err = x.applyToCall(flags, in, t, ofService)
	case !isCall && given("body", "body-file", "header") && isRequest(t.Body):
		err = errors.New("the body is the request of a call: with --call or --method, --body and --header are those of the request; add --replace makes another task")
	case !isCall:
		err = x.applyContent(flags, in, &t.Body, &t.Headers)
	}
	if err != nil {
		return err
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

// applyContent sets the body and the headers, of a task or of a request.
func (x *taskFlags) applyContent(flags *pflag.FlagSet, in io.Reader, body *[]byte, headers *map[string]string) (err error) {
	switch {
	case flags.Changed("body") && flags.Changed("body-file"):
		return errors.New("give --body or --body-file, not both")
	case flags.Changed("body"):
		*body = []byte(x.body)
	case x.bodyFile == "-":
		*body, err = io.ReadAll(io.LimitReader(in, durable.MaxTask+1))
	case flags.Changed("body-file"):
		*body, err = os.ReadFile(x.bodyFile)
	}
	if flags.Changed("header") {
		*headers = make(map[string]string)
	}
	for _, h := range x.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return fmt.Errorf("the header %q is not NAME=VALUE", h)
		}
		(*headers)[name] = value
	}
	return err
}

// isRequest reports whether a body has the form of a call's request, and nothing else.
func isRequest(body []byte) bool {
	var parts map[string]any
	if json.Unmarshal(body, &parts) != nil || parts["url"] == nil {
		return false
	}
	for _, name := range []string{"url", "method", "headers", "body", "body64"} {
		delete(parts, name)
	}
	return len(parts) == 0
}

// applyToCall sets the parts of the request in a task's body.
func (x *taskFlags) applyToCall(flags *pflag.FlagSet, in io.Reader, t *durable.Task, ofService bool) error {
	var r callback.Request
	if len(t.Body) > 0 {
		var err error
		if r, err = callback.Parse(t.Body); err != nil && x.call == "" {
			return fmt.Errorf("the task is not a call: %w", err)
		}
	}
	if flags.Changed("call") {
		r.URL = x.call
	}
	if flags.Changed("method") {
		r.Method = x.method
	}
	if err := x.applyContent(flags, in, &r.Body, &r.Headers); err != nil {
		return err
	}
	if ofService { // it checks the request itself, whose secrets may be dots
		t.Body = encodeRequest(&r)
		return nil
	}
	call, err := r.Task(t.Key)
	t.Body = call.Body
	return err
}

var missedNames = map[string]durable.Missed{"latest": durable.LatestMissed, "fire": durable.FireMissed, "dead": durable.DeadMissed}

// when returns the time that the flags give, or nil.
func (x *taskFlags) when(flags *pflag.FlagSet) (*moment, error) {
	switch {
	case flags.Changed("at") && flags.Changed("after"):
		return nil, errors.New("give --at or --after, not both")
	case flags.Changed("after"):
		return &moment{after: x.after}, nil
	case flags.Changed("at"):
		at, err := parseTime(x.at)
		if err == nil && at.IsZero() {
			err = errors.New("the time of --at is empty")
		}
		return &moment{at: at}, err
	}
	return nil, nil
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
--replace replaces it. If --file names no file, it becomes a new store.`,
		Example: `  tickless tasks add --file tasks.db order-17 --handler mail --body '{"to":"a@b.example"}' --after 1h
  tickless tasks add --redis redis://localhost:6379 report --handler report --cron "0 9 * * 1-5" --zone Europe/Berlin
  tickless tasks add --url http://127.0.0.1:7420 order-17 --call https://shop.example/expire --body 17 --after 30m`,
		Args: cli.One("key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := unescapeID(args[0])
			t := durable.Task{Key: key}
			if err == nil {
				err = x.apply(cmd.Flags(), cmd.InOrStdin(), &t, c.url != "")
			}
			if t.Handler == "" && x.call != "" && c.url == "" {
				t.Handler = callback.Name
			}
			at, atErr := x.when(cmd.Flags())
			if err = errors.Join(err, atErr); err == nil && c.url == "" { // before a file is made
				if t.Handler == "" {
					err = errors.New("give --handler, or --call URL")
				} else {
					_, err = (&durable.Item{Task: t, When: firstTime(&t, at)}).Stored()
				}
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withTasks(cmd, true, func(ctx context.Context, q target) error {
				out, err := q.add(ctx, &t, at, replace, paused)
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
		Args: cli.One("key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := unescapeID(args[0])
			at, atErr := x.when(cmd.Flags())
			given := false
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { given = given || f.Changed })
			if err = errors.Join(err, atErr); err == nil && !given {
				err = errors.New("give flags that say what to change")
			}
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return c.withTasks(cmd, false, func(ctx context.Context, q target) error {
				info, err := q.Get(ctx, key)
				if err != nil {
					return err
				}
				if info.NextTask != nil {
					info.Task = *info.NextTask
				}
				t := info.Task
				if err := x.apply(cmd.Flags(), cmd.InOrStdin(), &t, c.url != ""); err != nil {
					return cli.UsageError{Err: err}
				}
				out, err := q.replace(ctx, &info, &t, at)
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

// printOutcome prints what a command did with a task, unless it failed.
func (c *sharedFlags) printOutcome(cmd *cobra.Command, id string, out durable.Outcome, err error) error {
	if err != nil {
		return err
	}
	return c.printOutcomes(cmd, []string{id}, []durable.Outcome{out}, true)
}
