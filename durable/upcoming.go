package durable

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// An UpcomingRun is a run that will be due.
type UpcomingRun struct {
	Key     string    `json:"key"`
	Handler string    `json:"handler"`
	Due     time.Time `json:"due"`
}

// Upcoming returns the runs that are due before a time, at most limit, which must be from 1
// to 1000: the earliest first, and those that are overdue too. A repeating task has each of
// its runs in the list, as if every run succeeded at once. Runs of a [Task.Schedule] after
// the next one are included if the Client knows the schedule.
//
// Paused tasks are not in the list, except those that run once. It reads the pending tasks
// that are due before the time, at most limit.
func (c *Client) Upcoming(ctx context.Context, before time.Time, limit int) ([]UpcomingRun, error) {
	page, err := c.Page(ctx, Filter{State: Pending, To: before}, "", limit)
	if err != nil {
		return nil, err
	}
	var runs []UpcomingRun
	for i := range page.Tasks {
		info := &page.Tasks[i]
		if info.Paused && !info.Once {
			continue
		}
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
