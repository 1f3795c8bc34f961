package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tickless/tickless/durable"
)

// A target has the tasks that the commands are about. The methods in the first group are
// those of durable.Client.
type target interface {
	Page(ctx context.Context, f durable.Filter, after durable.Cursor, limit int) (durable.Page, error)
	Get(ctx context.Context, id string) (durable.Info, error)
	Explain(ctx context.Context, id string) (durable.Explanation, error)
	Runs(ctx context.Context, key string) ([]durable.Run, error)
	RunsPage(ctx context.Context, f durable.Filter, after durable.Cursor, limit int) (durable.RunsPage, error)
	Upcoming(ctx context.Context, before time.Time, limit int) ([]durable.UpcomingRun, error)
	Workers(ctx context.Context) ([]durable.WorkerInfo, error)
	SetLimit(ctx context.Context, handler string, l durable.Limit) error
	PauseHandler(ctx context.Context, handler, note string) error
	ResumeHandler(ctx context.Context, handler string) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error

	limits(ctx context.Context) ([]*handlerLimit, error)
	summary(ctx context.Context) (durable.Health, durable.Stats, error)
	// add schedules a task. Unless replace is true, it keeps the key's task if there is one.
	add(ctx context.Context, t *durable.Task, at *moment, replace, paused bool) (durable.Outcome, error)
	// replace puts a task in the place of the one that Get returned, at the same time if at
	// is nil.
	replace(ctx context.Context, before *durable.Info, t *durable.Task, at *moment) (durable.Outcome, error)
	// changeEach carries out a command: cancel, run, requeue, purge, pause or resume. After
	// an error it returns the outcomes so far.
	changeEach(ctx context.Context, command string, ids []string) ([]durable.Outcome, error)
	// changeAll carries out cancel, requeue or purge on tasks that match a filter, at most
	// limit unless that is 0. It returns how many it has changed, also after an error.
	changeAll(ctx context.Context, command string, f durable.Filter, limit int, progress func(n int)) (int, error)
}

// A moment is a time that flags give: a point in time, or a delay if that is zero.
type moment struct {
	at    time.Time
	after time.Duration
}

func (m *moment) when() durable.When {
	if m.at.IsZero() {
		return durable.After(m.after)
	}
	return durable.At(m.at)
}

// local has the tasks of a store.
type local struct{ *durable.Client }

func (c local) limits(ctx context.Context) ([]*handlerLimit, error) {
	st, err := c.Stats(ctx)
	byHandler := make(map[string]*handlerLimit)
	for h, l := range st.Limits {
		byHandler[h] = &handlerLimit{h, l.Concurrency, l.Rate, l.GroupConcurrency, l.GroupRate, nil, ""}
	}
	for h, p := range st.PausedHandlers {
		if byHandler[h] == nil {
			byHandler[h] = &handlerLimit{Handler: h}
		}
		since := p.Since.Std()
		byHandler[h].PausedSince, byHandler[h].Note = &since, p.Note
	}
	list := []*handlerLimit{}
	for _, h := range slices.Sorted(maps.Keys(byHandler)) {
		list = append(list, byHandler[h])
	}
	return list, err
}

func (c local) summary(ctx context.Context) (h durable.Health, st durable.Stats, err error) {
	if h, err = c.Check(ctx); err == nil || errors.Is(err, durable.ErrUnsafe) {
		st, err = c.Stats(ctx)
	}
	return h, st, err
}

// firstTime returns when a new task runs: at is what flags say, or nil.
func firstTime(t *durable.Task, at *moment) durable.When {
	switch {
	case at != nil:
		return at.when()
	case repeats(t):
		return durable.Next()
	}
	return durable.After(0)
}

func (c local) add(ctx context.Context, t *durable.Task, at *moment, replace, paused bool) (durable.Outcome, error) {
	var opts []durable.ScheduleOption
	if !replace {
		opts = append(opts, durable.OnlyNew())
	}
	if paused {
		opts = append(opts, durable.Paused())
	}
	return c.Schedule(ctx, *t, firstTime(t, at), opts...)
}

func (c local) replace(ctx context.Context, before *durable.Info, t *durable.Task, at *moment) (durable.Outcome, error) {
	var w durable.When
	switch {
	case before.State >= durable.Dead:
		return 0, fmt.Errorf("%s is %v: requeue or add it", escapeText(before.ID), before.State)
	case at != nil:
		w = at.when()
	case repeats(t):
		w = durable.Next()
	case before.State == durable.Running:
		return 0, fmt.Errorf("%s is running: say with --at or --after when it runs again", escapeText(before.ID))
	case !before.At.IsZero():
		w = durable.At(before.At)
	}
	return c.Schedule(ctx, *t, w, durable.IfVersion(before.Version))
}

func (c local) changeEach(ctx context.Context, command string, ids []string) (outcomes []durable.Outcome, err error) {
	moves := make([]durable.Move, len(ids))
	for i, id := range ids {
		moves[i] = durable.Move{ID: id, When: durable.After(0)}
	}
	switch command {
	case "cancel":
		return c.CancelBatch(ctx, ids)
	case "run":
		return c.RescheduleBatch(ctx, moves)
	case "requeue":
		return c.RequeueBatch(ctx, moves)
	case "purge":
		return c.PurgeBatch(ctx, ids)
	}
	one := c.PauseTask
	if command == "resume" {
		one = c.ResumeTask
	}
	for _, id := range ids {
		out, err := one(ctx, id)
		if err != nil {
			return outcomes, fmt.Errorf("%s: %w", escapeText(id), err)
		}
		outcomes = append(outcomes, out)
	}
	return outcomes, nil
}

func (c local) changeAll(ctx context.Context, command string, f durable.Filter, limit int, progress func(n int)) (int, error) {
	opts := []durable.BulkOption{durable.Progress(progress)}
	if limit > 0 {
		opts = append(opts, durable.AtMost(limit))
	}
	switch command {
	case "cancel":
		return c.CancelAll(ctx, f, opts...)
	case "requeue":
		return c.RequeueAll(ctx, f, durable.After(0), opts...)
	}
	return c.PurgeAll(ctx, f, opts...)
}
