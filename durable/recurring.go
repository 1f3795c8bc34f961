package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/jobs"
)

func (t *Task) repeats() bool { return t.Every > 0 || t.Cron != "" || t.Schedule != "" }

// parseCron parses the cron spec and the zone of a task: see [Task.Cron].
func parseCron(spec, zone string) (Schedule, error) {
	if zone == "Local" {
		return nil, errors.New(`the zone "Local" depends on the machine`)
	}
	return jobs.ParseCron(spec, zone)
}

// A recurrence says when the runs of a task are due.
type recurrence struct {
	scheduleName string
	every        time.Duration
	schedule     Schedule
	lastDue      store.Time // no run is due later; 0: no end
}

// makeRecurrence returns when the task's runs are due, or an error if this process
// cannot compute that. schedules are the Client's schedules, by name.
func (t *Task) makeRecurrence(schedules map[string]Schedule) (r recurrence, err error) {
	r.every = t.Every
	if !t.End.IsZero() {
		r.lastDue = store.TimeOf(t.End)
	}
	switch {
	case t.Cron != "":
		r.schedule, err = parseCron(t.Cron, t.Zone)
		if every, ok := r.schedule.(jobs.Every); ok {
			r.every, r.schedule = time.Duration(every), nil
		}
	case t.Schedule != "":
		r.scheduleName = t.Schedule
		if r.schedule = schedules[t.Schedule]; r.schedule == nil {
			err = fmt.Errorf("the Client does not know the schedule %q: see WithSchedule", t.Schedule)
		}
	}
	return r, err
}

// minPeriod is the shortest time between two runs of a repeating task.
const minPeriod = time.Millisecond

// nextRun returns the time of the run that follows the run at due. ok is false if there
// is no such run.
func (r *recurrence) nextRun(due store.Time) (next store.Time, ok bool, err error) {
	switch {
	case r.every > 0:
		next = due.Add(r.every)
	case r.schedule == nil:
		return 0, false, nil
	default:
		thisRun := due.Std()
		t := r.schedule.Next(thisRun)
		switch {
		case t.IsZero():
			return 0, false, nil
		case !t.After(thisRun):
			return 0, false, NoRetry(fmt.Errorf("durable: the schedule %q does not advance: after %s comes %s", r.scheduleName,
				thisRun.UTC().Format(time.RFC3339Nano), t.UTC().Format(time.RFC3339Nano)))
		}
		next = max(store.TimeOf(t), due.Add(minPeriod))
	}
	// At Farthest a task is paused, so there is no run.
	return next, next < store.Farthest && (r.lastDue == 0 || next <= r.lastDue), nil
}

// NextRuns returns the times of up to n runs after one that was due at a time. The list is
// shorter if the task does not repeat so often, or repeats by a Schedule.
func (t *Task) NextRuns(due time.Time, n int) (times []time.Time) {
	r, err := t.makeRecurrence(nil)
	for at, ok := store.TimeOf(due), err == nil; ok && len(times) < n; {
		if at, ok, err = r.nextRun(at); ok && err == nil {
			times = append(times, at.Std())
		}
	}
	return times
}

// latestRun returns the time of the latest run from due to now, both included. It is
// for tasks without a Schedule. It searches the last minute first, then ever longer
// periods.
func (r *recurrence) latestRun(due, now store.Time) store.Time {
	if r.lastDue != 0 {
		now = min(now, r.lastDue)
	}
	switch {
	case r.every > 0:
		every := store.Time(0).Add(r.every)
		return due + max(0, now-due)/every*every
	case r.schedule == nil:
		return due
	}
	for searchPeriod := time.Minute; ; searchPeriod = min(4*searchPeriod, store.MaxDelay) {
		searchStart := max(due, now.Add(-searchPeriod))
		if searchPeriod == store.MaxDelay {
			searchStart = due
		}
		next, ok, _ := r.nextRun(searchStart)
		if searchStart != due && (!ok || next > now) {
			continue
		}
		for ok && next <= now {
			due = next
			next, ok, _ = r.nextRun(due)
		}
		return due
	}
}

// firstRun returns the time of the task's first run at or after now. The time is after
// the task's End if there is no such run.
func (t *Task) firstRun(now store.Time, schedules map[string]Schedule) (at store.Time, err error) {
	if !t.repeats() {
		return 0, invalidError("task %q does not repeat, and so has no next run", t.Key)
	}
	r, err := t.makeRecurrence(schedules)
	if err != nil {
		return 0, invalidError("task %q: %v", t.Key, err)
	}
	startTime := now
	if !t.Start.IsZero() {
		startTime = store.TimeOf(t.Start)
	}
	switch {
	case r.every == 0:
		at, _, err = r.nextRun(max(startTime, now) - 1)
	case t.Start.IsZero():
		at = now.Add(r.every)
	case startTime >= now:
		at = startTime
	default:
		r.lastDue = 0
		at = r.latestRun(startTime, now-1).Add(r.every)
	}
	if err != nil || at == 0 || at == store.Farthest && t.End.IsZero() { // at Farthest it would be paused
		return 0, invalidError("task %q never runs from %v on", t.Key, max(startTime, now).Std())
	}
	return at, nil
}

// An UpcomingRun is a run that will be due.
type UpcomingRun struct {
	Key     string    `json:"key"` // an Info.ID
	Handler string    `json:"handler"`
	Due     time.Time `json:"due"`
}

// Upcoming returns the runs that are due before a time, at most limit, which must be from 1
// to 1000: the earliest first, and those that are overdue too. A repeating task has each of
// its runs in the list, as if every run succeeded at once. Runs of a [Task.Schedule] after
// the next one are included if the Client knows the schedule.
//
// Paused tasks are not in the list, except those that run once. It reads the pending tasks
// that are due before the time, until it has limit that are not paused.
func (c *Client) Upcoming(ctx context.Context, before time.Time, limit int) ([]UpcomingRun, error) {
	var tasks []Info
	for page := (Page{}); ; {
		var err error
		if page, err = c.Page(ctx, Filter{State: Pending, To: before}, page.Next, limit); err != nil {
			return nil, err
		}
		for _, info := range page.Tasks {
			if !info.Paused || info.Once {
				tasks = append(tasks, info)
			}
		}
		if len(tasks) >= limit || page.Next == "" {
			break
		}
	}
	var runs []UpcomingRun
	for i := range tasks {
		info := &tasks[i]
		runs = append(runs, UpcomingRun{info.ID, info.Task.Handler, info.At})
		due := store.TimeOf(info.Due) // a retry does not move the runs that follow
		r, err := info.Task.makeRecurrence(c.schedules)
		for n := 1; err == nil && n < limit && !info.Paused; n++ {
			var ok bool
			if due, ok, err = r.nextRun(due); !ok || err != nil || !due.Std().Before(before) {
				break
			}
			if due.Std().After(info.At) {
				runs = append(runs, UpcomingRun{info.ID, info.Task.Handler, due.Std()})
			}
		}
	}
	slices.SortStableFunc(runs, func(a, b UpcomingRun) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Key, b.Key))
	})
	return runs[:min(len(runs), limit)], nil
}
