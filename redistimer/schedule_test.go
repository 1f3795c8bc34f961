package redistimer_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer"
)

var ctx = context.Background()

func TestSchedule_KeepsAllOfATask(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r)
		want := redistimer.Task{
			Key:         "a\r\n b",
			Handler:     "h",
			Body:        []byte("\x00\xff body \r\n"),
			Headers:     map[string]string{"X-A": "1", "": "empty", "b": ""},
			MaxAttempts: 300,
			Timeout:     90 * time.Second,
			Every:       time.Minute,
			Missed:      redistimer.DeadMissed,
			MissedAfter: time.Hour,
		}
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
		out, err := c.Schedule(ctx, want, redistimer.At(at))
		require.NoError(t, err)
		require.Equal(t, redistimer.Created, out)
		info, err := c.Get(ctx, want.Key)
		require.NoError(t, err)
		require.Equal(t, want, info.Task)
		require.Equal(t, redistimer.Pending, info.State)
		require.True(t, at.Equal(info.At), "to the microsecond: %v, %v", at, info.At)
		require.True(t, at.Equal(info.Due))
		require.Zero(t, info.Attempts)

		_, err = c.Get(ctx, "another")
		require.ErrorIs(t, err, redistimer.ErrNotFound)
	})
}

func TestSchedule_Modes(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r)
		for _, x := range []struct {
			name  string
			opt   []redistimer.ScheduleOption
			after time.Duration // the task there is due after an hour
			want  redistimer.Outcome
		}{
			{"upsert", nil, 2 * time.Hour, redistimer.Replaced},
			{"new", []redistimer.ScheduleOption{redistimer.OnlyNew()}, 2 * time.Hour, redistimer.Kept},
			{"earlier", []redistimer.ScheduleOption{redistimer.OnlyEarlier()}, time.Minute, redistimer.Replaced},
			{"not earlier", []redistimer.ScheduleOption{redistimer.OnlyEarlier()}, 2 * time.Hour, redistimer.Kept},
			{"later", []redistimer.ScheduleOption{redistimer.OnlyLater()}, 2 * time.Hour, redistimer.Replaced},
			{"not later", []redistimer.ScheduleOption{redistimer.OnlyLater()}, time.Minute, redistimer.Kept},
		} {
			first := redistimer.Task{Key: x.name, Handler: "first"}
			second := redistimer.Task{Key: x.name, Handler: "second"}
			out, err := c.Schedule(ctx, first, redistimer.After(time.Hour), x.opt...)
			require.NoError(t, err)
			require.Equal(t, redistimer.Created, out, x.name)
			out, err = c.Schedule(ctx, second, redistimer.After(x.after), x.opt...)
			require.NoError(t, err)
			require.Equal(t, x.want, out, x.name)
			info, err := c.Get(ctx, x.name)
			require.NoError(t, err)
			require.Equal(t, x.want == redistimer.Replaced, info.Task.Handler == "second", x.name)
			require.Equal(t, []string{"due"}, place(t, r, x.name))
		}
	})
}

func TestScheduleBatch_OfManyAndOfOneKeyTwice(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r)
		const n = 5000
		var items []redistimer.Item
		for i := range n {
			items = append(items, redistimer.Item{
				Task: redistimer.Task{Key: fmt.Sprint("k", i), Handler: "h"},
				When: redistimer.After(time.Hour),
			})
		}
		items = append(items, redistimer.Item{
			Task: redistimer.Task{Key: "k7", Handler: "the later counts"},
			When: redistimer.After(2 * time.Hour),
		})
		out, err := c.ScheduleBatch(ctx, items)
		require.NoError(t, err)
		for i, o := range out[:n] {
			require.Equal(t, redistimer.Created, o, i)
		}
		require.Equal(t, redistimer.Replaced, out[n])
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
		require.Equal(t, redistimer.Absent, out[0])
		for i, o := range out[1:] {
			require.Equal(t, redistimer.Removed, o, i)
		}
		st, err = c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Pending)
		require.EqualValues(t, n, st.Cancelled)
		for _, key := range keysOf(t, r) {
			require.True(t, strings.HasSuffix(key, ":meta") || strings.HasSuffix(key, ":wake"), "%s is left", key)
		}
	})
}

func TestReschedule_MovesAPendingTask(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r)
		_, err := c.Schedule(ctx, redistimer.Task{Key: "k", Handler: "h"}, redistimer.After(time.Hour))
		require.NoError(t, err)
		at := time.Now().Add(5 * time.Hour).Truncate(time.Microsecond)
		out, err := c.Reschedule(ctx, "k", redistimer.At(at))
		require.NoError(t, err)
		require.Equal(t, redistimer.Moved, out)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, at.Equal(info.At))
		out, err = c.Reschedule(ctx, "absent", redistimer.After(0))
		require.NoError(t, err)
		require.Equal(t, redistimer.Absent, out)
	})
}

func TestSchedule_RefusesBadInputAndLosesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r)
		good := redistimer.Task{Key: "good", Handler: "h"}
		with := func(f func(*redistimer.Task)) redistimer.Task {
			x := good
			x.Key = "bad"
			f(&x)
			return x
		}
		hour := redistimer.After(time.Hour)
		for name, x := range map[string]redistimer.Item{
			"empty key":          {Task: with(func(t *redistimer.Task) { t.Key = "" }), When: hour},
			"long key":           {Task: with(func(t *redistimer.Task) { t.Key = strings.Repeat("k", 513) }), When: hour},
			"NUL in key":         {Task: with(func(t *redistimer.Task) { t.Key = "a\x00b" }), When: hour},
			"no handler":         {Task: with(func(t *redistimer.Task) { t.Handler = "" }), When: hour},
			"body too large":     {Task: with(func(t *redistimer.Task) { t.Body = bytes.Repeat([]byte("b"), 64<<10) }), When: hour},
			"headers too large":  {Task: with(func(t *redistimer.Task) { t.Headers = map[string]string{"h": strings.Repeat("v", 64<<10)} }), When: hour},
			"negative delay":     {Task: good, When: redistimer.After(-1)},
			"zero time":          {Task: good, When: redistimer.At(time.Time{})},
			"no time":            {Task: good},
			"far future":         {Task: good, When: redistimer.At(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))},
			"negative attempts":  {Task: with(func(t *redistimer.Task) { t.MaxAttempts = -1 }), When: hour},
			"negative timeout":   {Task: with(func(t *redistimer.Task) { t.Timeout = -1 }), When: hour},
			"short period":       {Task: with(func(t *redistimer.Task) { t.Every = time.Microsecond }), When: hour},
			"period and name":    {Task: with(func(t *redistimer.Task) { t.Every, t.Schedule = time.Second, "s" }), When: hour},
			"unknown missed":     {Task: with(func(t *redistimer.Task) { t.Missed = 3 }), When: hour},
			"missed without use": {Task: with(func(t *redistimer.Task) { t.MissedAfter = 1 }), When: hour},
		} {
			out, err := c.ScheduleBatch(ctx, []redistimer.Item{{Task: good, When: hour}, x})
			require.ErrorIs(t, err, redistimer.ErrInvalid, name)
			require.Nil(t, out, name)
			_, err = c.Schedule(ctx, x.Task, x.When)
			require.ErrorIs(t, err, redistimer.ErrInvalid, name)
		}
		for _, opts := range [][]redistimer.ScheduleOption{
			{redistimer.OnlyEarlier(), redistimer.OnlyLater()},
			{redistimer.OnlyNew(), redistimer.OnlyLater()},
			{redistimer.OnlyEarlier(), redistimer.OnlyNew()},
		} {
			_, err := c.Schedule(ctx, good, hour, opts...)
			require.ErrorIs(t, err, redistimer.ErrInvalid)
			require.ErrorContains(t, err, "exclude one another")
			_, err = c.ScheduleBatch(ctx, []redistimer.Item{{Task: good, When: hour}}, opts...)
			require.ErrorIs(t, err, redistimer.ErrInvalid)
		}
		require.Empty(t, keysOf(t, r), "nothing was sent")

		_, err := c.Cancel(ctx, "")
		require.ErrorIs(t, err, redistimer.ErrInvalid)
		_, err = c.Reschedule(ctx, "k", redistimer.After(-1))
		require.ErrorIs(t, err, redistimer.ErrInvalid)
		_, err = c.Get(ctx, "")
		require.ErrorIs(t, err, redistimer.ErrInvalid)

		largest := with(func(t *redistimer.Task) { t.Body = make([]byte, 64<<10-len("bad")-len("h")) })
		_, err = c.Schedule(ctx, largest, hour)
		require.NoError(t, err)
		info, err := c.Get(ctx, "bad")
		require.NoError(t, err)
		require.Equal(t, largest.Body, info.Task.Body)
	})
}

// What is nil is refused where it is given, and by name.
func TestNew_RefusesWhatIsNil(t *testing.T) {
	r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer r.Close()
	c := redistimer.New(r)
	task, at := redistimer.Task{Key: "k", Handler: "h"}, redistimer.After(0)
	run := func(context.Context, redistimer.Delivery) error { return nil }
	for want, f := range map[string]func(){
		"redistimer: New with a nil client":                       func() { redistimer.New(nil) },
		"redistimer: New with a nil client ":                      func() { redistimer.New((*redis.Client)(nil)) },
		"redistimer: New with a nil client  ":                     func() { redistimer.New((*redis.ClusterClient)(nil)) },
		"redistimer: New with a nil client   ":                    func() { redistimer.New((*redis.Ring)(nil)) },
		"redistimer: New: option 2 is nil":                        func() { redistimer.New(r, quiet, nil) },
		"redistimer: NewWorker: option 1 is nil":                  func() { redistimer.NewWorker(c, nil) },
		"redistimer: Handle: option 1 is nil":                     func() { redistimer.NewWorker(c).Handle("h", run, nil) },
		"redistimer: Schedule: option 1 is nil":                   func() { _, _ = c.Schedule(ctx, task, at, nil) },
		"redistimer: ScheduleBatch: option 1 is nil":              func() { _, _ = c.ScheduleBatch(ctx, nil, nil) },
		"redistimer: TuneCluster with nil ClusterOptions":         func() { redistimer.TuneCluster(nil) },
		"redistimer: WithSchedule with no name or a nil Schedule": func() { redistimer.WithSchedule("s", nil) },
	} {
		require.PanicsWithValue(t, strings.TrimRight(want, " "), f, want)
	}
}

func TestNew_AnotherNumberOfShardsIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		few := redistimer.New(r, redistimer.WithShards(8))
		_, err := few.Check(ctx)
		require.NoError(t, err)
		many := redistimer.New(r, redistimer.WithShards(32))
		_, err = many.Check(ctx)
		require.ErrorIs(t, err, redistimer.ErrSchema)
		require.ErrorContains(t, err, "2/8")
		require.ErrorContains(t, err, "2/32")
		require.ErrorIs(t, redistimer.NewWorker(many).Run(ctx), redistimer.ErrSchema)

		// Without a Check, and in shards that the queue does not have.
		for i := range 100 {
			_, err := few.Schedule(ctx, redistimer.Task{Key: fmt.Sprint(i), Handler: "h"}, redistimer.After(time.Hour))
			require.NoError(t, err)
		}
		for i := range 100 {
			many := redistimer.New(r, redistimer.WithShards(32))
			_, err := many.Schedule(ctx, redistimer.Task{Key: fmt.Sprint(i), Handler: "h"}, redistimer.After(time.Hour))
			require.ErrorIs(t, err, redistimer.ErrSchema)
		}
		_, err = redistimer.New(r, redistimer.WithShards(32), redistimer.WithName("other")).Check(ctx)
		require.NoError(t, err, "another queue has nothing to do with it")
	})
}

func TestSchedule_AfterTheServerForgotItsScripts(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r)
		for i := range 5 {
			require.NoError(t, r.ScriptFlush(ctx).Err())
			if r, ok := r.(*redis.ClusterClient); ok {
				for _, m := range masters(t, r) {
					require.NoError(t, m.ScriptFlush(ctx).Err())
				}
			}
			var items []redistimer.Item
			for j := range 200 {
				items = append(items, redistimer.Item{
					Task: redistimer.Task{Key: fmt.Sprint(i, "-", j), Handler: "h"},
					When: redistimer.After(time.Hour),
				})
			}
			out, err := c.ScheduleBatch(ctx, items)
			require.NoError(t, err)
			for _, o := range out {
				require.Equal(t, redistimer.Created, o)
			}
		}
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1000, st.Pending)
	})
}
