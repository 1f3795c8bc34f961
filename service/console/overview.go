package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/service/api"
)

// A sample has counters of the store at one time.
type sample struct {
	at         time.Time
	done, died int64
}

// maxSamples are an hour of samples.
const maxSamples = 61

// Run samples the store's counters once a minute, for the numbers of the last hour, until
// ctx ends.
func (c *Console) Run(ctx context.Context) {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		if st, err := c.client.Stats(ctx); err == nil {
			c.addSample(sample{time.Now(), st.Done, st.Died})
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Console) addSample(s sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.samples = append(c.samples, s); len(c.samples) > maxSamples {
		c.samples = c.samples[1:]
	}
}

// lastHour returns how many runs were done and failed since the oldest sample, and when that
// was. ok is false without a sample.
func (c *Console) lastHour(st *durable.Stats) (done, died int64, since time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return 0, 0, 0, false
	}
	s := c.samples[0]
	return st.Done - s.done, st.Died - s.died, time.Since(s.at), true
}

// A number is a figure of the overview.
type number struct {
	ID, Name, Value, Link string
	Bad                   bool
}

func (c *Console) allNumbers(ctx context.Context) ([]number, durable.Stats, error) {
	st, err := c.client.Stats(ctx)
	if err != nil {
		return nil, st, err
	}
	list := []number{
		{"pending", "pending", digits(st.Pending), "/tasks?state=pending", false},
		{"overdue", "overdue", digits(st.Overdue), "", st.Late > time.Minute},
		{"late", "late, the most overdue", shortDuration(st.Late), "", st.Late > time.Minute},
		{"running", "running", digits(st.Running), "/tasks?state=running", false},
		{"dead", "dead letters", digits(st.Dead), "/dead", st.Dead > 0},
		{"unknown", "due, without a worker", digits(st.Unknown), "", st.Unknown > 0},
	}
	if done, died, since, ok := c.lastHour(&st); ok {
		span := fmt.Sprintf("in %s", shortDuration(since.Round(time.Second)))
		if since >= time.Hour-time.Minute {
			span = "in an hour"
		}
		list = append(list, number{"done", "done " + span, digits(done), "", false}, number{"died", "failed " + span, digits(died), "", died > 0})
	}
	return list, st, nil
}

type overviewPage struct {
	layout
	Numbers     []number
	Warnings    []string
	StorePaused bool
}

func (c *Console) overview(w http.ResponseWriter, r *http.Request) error {
	p := overviewPage{layout: c.layout(r, "Overview", "/")}
	var st durable.Stats
	var err error
	if p.Numbers, st, err = c.allNumbers(r.Context()); err != nil {
		return err
	}
	p.StorePaused = st.Paused > 0
	due, err := cache(c, "due", 30*time.Second, func() ([]number, error) { return c.countDue(r.Context()) })
	if err != nil {
		return err
	}
	p.Numbers = append(p.Numbers, due...)
	health, err := cache(c, "health", 10*time.Second, func() (durable.Health, error) { return c.client.Check(r.Context()) })
	if err != nil {
		p.Problem = err.Error()
	}
	p.Warnings = health.Warnings
	return c.render(w, http.StatusOK, "overview", p)
}

// numbers serves the overview's figures to the script.
func (c *Console) numbers(w http.ResponseWriter, r *http.Request) error {
	list, err := cache(c, "numbers", time.Second, func() ([]number, error) {
		list, _, err := c.allNumbers(r.Context())
		return list, err
	})
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, n := range list {
		values[n.ID] = n.Value
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(values)
}

// What has no counter, a page counts or reads one by one: at most maxCounted tasks, and for
// about readTime, so that it comes in time from a busy store too.
const (
	maxCounted = 10_000
	readTime   = 100 * time.Millisecond
)

// countDue counts what falls due in the next hour and in the next day.
func (c *Console) countDue(ctx context.Context) ([]number, error) {
	now := time.Now()
	hour, day := now.Add(time.Hour), now.Add(24*time.Hour)
	inHour, more, err := countTasks(ctx, c.client, &api.Filter{Filter: durable.Filter{State: durable.Pending, From: now, To: hour}}, now.Add(readTime))
	if err != nil {
		return nil, err
	}
	list := []number{{Name: "due in an hour", Value: atLeast(inHour, more)}}
	later := 0
	if !more {
		if later, more, err = countTasks(ctx, c.client, &api.Filter{Filter: durable.Filter{State: durable.Pending, From: hour, To: day}}, now.Add(readTime)); err != nil {
			return nil, err
		}
	}
	return append(list, number{Name: "due in a day", Value: atLeast(inHour+later, more)}), nil
}

// countTasks counts the tasks that match a filter. more says that it has stopped at
// maxCounted, or at a time.
func countTasks(ctx context.Context, client *durable.Client, f *api.Filter, until time.Time) (n int, more bool, err error) {
	more, err = readTasks(ctx, client, f.Filter, new(durable.Cursor), until, func(info *durable.Info) (bool, error) {
		if f.Selects(info) {
			n++
		}
		return false, nil
	})
	return n, more, err
}

// readTasks calls visit with the tasks that match a filter and come after a cursor, which it
// moves. more says that it has stopped before the last one: because visit says so, at
// maxCounted, or at a time.
func readTasks(ctx context.Context, client *durable.Client, f durable.Filter, cursor *durable.Cursor, until time.Time, visit func(*durable.Info) (stop bool, err error)) (more bool, err error) {
	for range maxCounted / 1000 {
		page, err := client.Page(ctx, f, *cursor, 1000)
		if err != nil {
			return false, err
		}
		for i := range page.Tasks {
			stop, err := visit(&page.Tasks[i])
			if stop && err == nil && i+1 < len(page.Tasks) {
				page, err = client.Page(ctx, f, *cursor, i+1) // for the cursor after this task
			}
			if stop || err != nil {
				*cursor = page.Next
				return page.Next != "", err
			}
		}
		if *cursor = page.Next; page.Next == "" {
			return false, nil
		}
		if time.Now().After(until) {
			break
		}
	}
	return true, nil
}

// atLeast formats a number of tasks, of which there may be more.
func atLeast(n int, more bool) string {
	if more {
		return digits(int64(n)) + "+"
	}
	return digits(int64(n))
}

// digits formats a number in groups of three.
func digits(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}
