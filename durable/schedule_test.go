package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestSchedule_KeepsAllOfATask(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem)
		want := durable.Task{
			Key:         "a\u2028\U0001f389 <b>",
			Handler:     "h",
			Body:        []byte("\x00\xff body \r\n"),
			Headers:     map[string]string{"X-A": "1", "": "empty", "b": ""},
			MaxAttempts: 300,
			Timeout:     90 * time.Second,
			Every:       time.Minute,
			Missed:      durable.DeadMissed,
			MissedAfter: time.Hour,
		}
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
		out, err := c.Schedule(ctx, want, durable.At(at))
		require.NoError(t, err)
		require.Equal(t, durable.Created, out)
		info, err := c.Get(ctx, want.Key)
		require.NoError(t, err)
		require.Equal(t, want, info.Task)
		require.Equal(t, durable.Pending, info.State)
		require.True(t, at.Equal(info.At), "to the microsecond: %v, %v", at, info.At)
		require.True(t, at.Equal(info.Due))
		require.Zero(t, info.Attempts)

		_, err = c.Get(ctx, "another")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

// ReturnInfo returns what Get would, for each outcome, and leaves the Info alone if the answer
// was lost.
func TestSchedule_ReturnInfo(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		lose := false
		c := durable.New(&faulty{Store: mem, lose: func() bool { return lose }})
		task := durable.Task{Key: "k", Handler: "h", Body: []byte("body"), Headers: map[string]string{"a": "b"}}
		daily := durable.Task{Key: "daily", Handler: "h", Every: 24 * time.Hour}
		var version int64
		for _, x := range []struct {
			want durable.Outcome
			task durable.Task
			when durable.When
			opts []durable.ScheduleOption
		}{
			{durable.Created, task, durable.After(time.Hour), nil},
			{durable.Replaced, task, durable.After(0), nil},
			{durable.Kept, task, durable.After(time.Hour), []durable.ScheduleOption{durable.OnlyNew()}},
			{durable.Created, daily, durable.Next(), []durable.ScheduleOption{durable.Paused()}},
			{durable.Replaced, daily, durable.Next(), nil},
		} {
			var info durable.Info
			out, err := c.Schedule(ctx, x.task, x.when, append(x.opts, durable.ReturnInfo(&info))...)
			require.NoError(t, err)
			require.Equal(t, x.want, out)
			got, err := c.Get(ctx, x.task.Key)
			require.NoError(t, err)
			require.Equal(t, got, info)
			require.Equal(t, out == durable.Kept, info.Version == version, "the version")
			version = info.Version
		}

		var info durable.Info
		lose = true
		_, err := c.Schedule(ctx, task, durable.After(0), durable.ReturnInfo(&info))
		var unknown *durable.UnknownError
		require.ErrorAs(t, err, &unknown)
		lose = false
		_, err = unknown.Again(ctx)
		require.NoError(t, err)
		require.Zero(t, info)
		ended := daily
		ended.Key, ended.End = "ended", time.Now().Add(time.Hour)
		out, err := c.Schedule(ctx, ended, durable.Next(), durable.ReturnInfo(&info))
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out)
		require.Zero(t, info)
		_, err = c.ScheduleBatch(ctx, []durable.Item{{Task: task, When: durable.After(0)}, {Task: daily, When: durable.Next()}}, durable.ReturnInfo(&info))
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}

func TestSchedule_Modes(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem)
		for _, x := range []struct {
			name  string
			opt   []durable.ScheduleOption
			after time.Duration // the task there is due after an hour
			want  durable.Outcome
		}{
			{"upsert", nil, 2 * time.Hour, durable.Replaced},
			{"new", []durable.ScheduleOption{durable.OnlyNew()}, 2 * time.Hour, durable.Kept},
			{"earlier", []durable.ScheduleOption{durable.OnlyEarlier()}, time.Minute, durable.Replaced},
			{"not earlier", []durable.ScheduleOption{durable.OnlyEarlier()}, 2 * time.Hour, durable.Kept},
			{"later", []durable.ScheduleOption{durable.OnlyLater()}, 2 * time.Hour, durable.Replaced},
			{"not later", []durable.ScheduleOption{durable.OnlyLater()}, time.Minute, durable.Kept},
		} {
			first := durable.Task{Key: x.name, Handler: "first"}
			second := durable.Task{Key: x.name, Handler: "second"}
			out, err := c.Schedule(ctx, first, durable.After(time.Hour), x.opt...)
			require.NoError(t, err)
			require.Equal(t, durable.Created, out, x.name)
			out, err = c.Schedule(ctx, second, durable.After(x.after), x.opt...)
			require.NoError(t, err)
			require.Equal(t, x.want, out, x.name)
			info, err := c.Get(ctx, x.name)
			require.NoError(t, err)
			require.Equal(t, x.want == durable.Replaced, info.Task.Handler == "second", x.name)
			require.Equal(t, durable.Pending, info.State)
		}
	})
}

func TestScheduleBatch_OfManyAndOfOneKeyTwice(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem)
		const n = 5000
		var items []durable.Item
		for i := range n {
			items = append(items, durable.Item{
				Task: durable.Task{Key: fmt.Sprint("k", i), Handler: "h"},
				When: durable.After(time.Hour),
			})
		}
		items = append(items, durable.Item{
			Task: durable.Task{Key: "k7", Handler: "the later counts"},
			When: durable.After(2 * time.Hour),
		})
		out, err := c.ScheduleBatch(ctx, items)
		require.NoError(t, err)
		for i, o := range out[:n] {
			require.Equal(t, durable.Created, o, i)
		}
		require.Equal(t, durable.Replaced, out[n])
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n, st.Pending)
		require.Zero(t, st.Overdue)
		info, err := c.Get(ctx, "k7")
		require.NoError(t, err)
		require.Equal(t, "the later counts", info.Task.Handler)

		keys := []string{"absent"}
		for i := range n {
			keys = append(keys, fmt.Sprint("k", i))
		}
		out, err = c.CancelBatch(ctx, keys)
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out[0])
		for i, o := range out[1:] {
			require.Equal(t, durable.Removed, o, i)
		}
		st, err = c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Pending)
		require.EqualValues(t, n, st.Cancelled)
	})
}

func TestReschedule_MovesAPendingTask(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem)
		_, err := c.Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(time.Hour))
		require.NoError(t, err)
		at := time.Now().Add(5 * time.Hour).Truncate(time.Microsecond)
		out, err := c.Reschedule(ctx, "k", durable.At(at))
		require.NoError(t, err)
		require.Equal(t, durable.Moved, out)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, at.Equal(info.At))
		out, err = c.Reschedule(ctx, "absent", durable.After(0))
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out)
	})
}

func TestSchedule_RefusesBadInputAndLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem)
		good := durable.Task{Key: "good", Handler: "h"}
		with := func(f func(*durable.Task)) durable.Task {
			x := good
			x.Key = "bad"
			f(&x)
			return x
		}
		hour := durable.After(time.Hour)
		for name, x := range map[string]durable.Item{
			"long key":           {Task: with(func(t *durable.Task) { t.Key = strings.Repeat("k", 513) }), When: hour},
			"NUL in key":         {Task: with(func(t *durable.Task) { t.Key = "a\x00b" }), When: hour},
			"no handler":         {Task: with(func(t *durable.Task) { t.Handler = "" }), When: hour},
			"body too large":     {Task: with(func(t *durable.Task) { t.Body = bytes.Repeat([]byte("b"), 64<<10) }), When: hour},
			"headers too large":  {Task: with(func(t *durable.Task) { t.Headers = map[string]string{"h": strings.Repeat("v", 64<<10)} }), When: hour},
			"negative delay":     {Task: good, When: durable.After(-1)},
			"zero time":          {Task: good, When: durable.At(time.Time{})},
			"no time":            {Task: good},
			"far future":         {Task: good, When: durable.At(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))},
			"negative attempts":  {Task: with(func(t *durable.Task) { t.MaxAttempts = -1 }), When: hour},
			"negative timeout":   {Task: with(func(t *durable.Task) { t.Timeout = -1 }), When: hour},
			"short period":       {Task: with(func(t *durable.Task) { t.Every = time.Microsecond }), When: hour},
			"period and name":    {Task: with(func(t *durable.Task) { t.Every, t.Schedule = time.Second, "s" }), When: hour},
			"unknown missed":     {Task: with(func(t *durable.Task) { t.Missed = 3 }), When: hour},
			"missed at once":     {Task: with(func(t *durable.Task) { t.Missed = durable.DeadMissed }), When: hour},
			"missed without use": {Task: with(func(t *durable.Task) { t.MissedAfter = 1 }), When: hour},
		} {
			out, err := c.ScheduleBatch(ctx, []durable.Item{{Task: good, When: hour}, x})
			require.ErrorIs(t, err, durable.ErrInvalid, name)
			require.Nil(t, out, name)
			_, err = c.Schedule(ctx, x.Task, x.When)
			require.ErrorIs(t, err, durable.ErrInvalid, name)
		}
		for info, err := range c.List(ctx, durable.Filter{}) {
			t.Fatalf("a command was sent: %+v, %v", info, err)
		}

		for _, opts := range [][]durable.ScheduleOption{
			{durable.OnlyEarlier(), durable.OnlyLater()},
			{durable.OnlyNew(), durable.OnlyLater()},
			{durable.OnlyEarlier(), durable.OnlyNew()},
		} {
			_, err := c.Schedule(ctx, good, hour, opts...)
			require.ErrorIs(t, err, durable.ErrInvalid)
			require.ErrorContains(t, err, "exclude one another")
			_, err = c.ScheduleBatch(ctx, []durable.Item{{Task: good, When: hour}}, opts...)
			require.ErrorIs(t, err, durable.ErrInvalid)
		}

		_, err := c.Cancel(ctx, "")
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = c.Reschedule(ctx, "k", durable.After(-1))
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = c.Get(ctx, "")
		require.ErrorIs(t, err, durable.ErrInvalid)

		largest := with(func(t *durable.Task) { t.Body = make([]byte, 64<<10-len("bad")-len("h")) })
		_, err = c.Schedule(ctx, largest, hour)
		require.NoError(t, err)
		info, err := c.Get(ctx, "bad")
		require.NoError(t, err)
		require.Equal(t, largest.Body, info.Task.Body)
	})
}

// A function that gets a nil argument panics. The panic's text names the function.
func TestNew_RefusesWhatIsNil(t *testing.T) {
	mem := memstore.New()
	c := durable.New(mem)
	task, at := durable.Task{Key: "k", Handler: "h"}, durable.After(0)
	run := func(context.Context, durable.Delivery) error { return nil }
	for want, f := range map[string]func(){
		"durable: New: nil Store":                 func() { durable.New(nil) },
		"durable: New: nil Store ":                func() { durable.New((*memstore.Store)(nil)) },
		"durable: New: option 2 is nil":           func() { durable.New(mem, quiet, nil) },
		"durable: NewWorker: nil Client":          func() { durable.NewWorker(nil) },
		"durable: NewWorker: option 1 is nil":     func() { durable.NewWorker(c, nil) },
		"durable: Handle: option 1 is nil":        func() { durable.NewWorker(c).Handle("h", run, nil) },
		"durable: Schedule: option 1 is nil":      func() { _, _ = c.Schedule(ctx, task, at, nil) },
		"durable: ScheduleBatch: option 1 is nil": func() { _, _ = c.ScheduleBatch(ctx, nil, nil) },
		`durable: WithSchedule: the Schedule is nil, or the name "s" does not have 1 to 512 bytes of UTF-8 without control characters`: func() { durable.WithSchedule("s", nil) },
	} {
		require.PanicsWithValue(t, strings.TrimRight(want, " "), f, want)
	}
}

func TestSchedule_RefusesTimesBeyondAllBounds(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		for _, task := range []durable.Task{
			{Key: "k", Handler: "h", Every: math.MaxInt64},
			{Key: "k", Handler: "h", Timeout: math.MaxInt64},
			{Key: "k", Handler: "h", Missed: durable.DeadMissed, MissedAfter: math.MaxInt64},
		} {
			_, err := c.Schedule(ctx, task, durable.After(0))
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
	})
}
