package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/service/api"
)

// A work is a bulk command that goes on when the browser leaves. It may be taken up again
// if it stopped at an error.
type work struct {
	id, action string
	fields     []field

	count   int
	err     error
	ended   bool
	endedAt time.Time
}

// workLifetime is how long an ended work is shown.
const workLifetime = time.Hour

// step is how many tasks one command changes, between two updates of the progress.
const step = 1000

type confirmPage struct {
	layout
	Question, Button, Back string
	Danger                 bool
	Fields                 []field
}

// confirm asks before a bulk command, and says how many tasks it is about.
func (c *Console) confirm(w http.ResponseWriter, r *http.Request) error {
	q, action := queryOf(r.PostForm), r.PostForm.Get("action")
	p := confirmPage{layout: c.layout(r, "Are you sure?", "/tasks"), Button: action, Danger: action == "cancel" || action == "purge", Back: q.link("/tasks")}
	p.Fields = append(q.Fields(), field{"action", action})
	if r.PostForm.Get("all") == "" {
		keys := r.PostForm["key"]
		if len(keys) == 0 {
			return api.Problemf(http.StatusUnprocessableEntity, "No task is ticked.")
		}
		p.Question = fmt.Sprintf("%s %s?", capital(action), tasksText(len(keys)))
		for _, k := range keys {
			p.Fields = append(p.Fields, field{"key", k})
		}
		return c.render(w, http.StatusOK, "confirm", p)
	}
	f, err := api.ParseFilter(q.Values)
	if err != nil {
		return err
	}
	n, more, err := countTasks(r.Context(), c.client, &f, time.Now().Add(timeout))
	if err != nil {
		return err
	}
	p.Fields = append(p.Fields, field{"all", "1"})
	p.Question = fmt.Sprintf("%s all %s that match?", capital(action), tasksText(n))
	if more {
		p.Question = fmt.Sprintf("%s all tasks that match, at least %s?", capital(action), digits(int64(n)))
	}
	return c.render(w, http.StatusOK, "confirm", p)
}

func capital(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }

func tasksText(n int) string {
	if n == 1 {
		return "1 task"
	}
	return digits(int64(n)) + " tasks"
}

func (c *Console) startWork(w http.ResponseWriter, r *http.Request) error {
	q, action := queryOf(r.PostForm), r.PostForm.Get("action")
	if r.PostForm.Get("all") == "" {
		n, err := c.api.ChangeAll(r.Context(), action, r.PostForm["key"])
		c.api.Audit(r.Context(), action, "", n)
		if err != nil {
			return err
		}
		return c.back(w, r, q.link("/tasks"))
	}
	f, err := api.ParseFilter(q.Values)
	if err != nil {
		return err
	}
	if f == (api.Filter{}) {
		return api.Problemf(http.StatusUnprocessableEntity, "An empty filter is refused.")
	}
	x := &work{id: durable.NewKey(), action: action, fields: append(q.Fields(), field{"action", action}, field{"all", "1"})}
	c.mu.Lock()
	for id, old := range c.works {
		if old.ended && time.Since(old.endedAt) > workLifetime {
			delete(c.works, id)
		}
	}
	c.works[x.id] = x
	c.mu.Unlock()
	go c.run(context.WithoutCancel(r.Context()), x, f)
	return c.back(w, r, "/bulk/"+x.id)
}

// run carries out a work, step by step.
func (c *Console) run(ctx context.Context, x *work, f api.Filter) {
	var cursor durable.Cursor
	for {
		stepCtx, cancel := context.WithTimeout(ctx, time.Minute)
		n, next, err := c.api.Bulk(stepCtx, x.action, &f, cursor, step)
		cancel()
		c.mu.Lock()
		x.count += n
		if cursor = next; err != nil || cursor == "" {
			x.err, x.ended, x.endedAt = err, true, time.Now()
		}
		ended, count := x.ended, x.count
		c.mu.Unlock()
		if ended {
			c.api.Audit(ctx, x.action, "", count)
			return
		}
	}
}

type workPage struct {
	layout
	Status            string
	Busy, CanContinue bool
	Fields            []field
}

func (c *Console) showWork(w http.ResponseWriter, r *http.Request) error {
	c.mu.Lock()
	x := c.works[r.PathValue("id")]
	var copied work
	if x != nil {
		copied = *x
	}
	c.mu.Unlock()
	if x == nil {
		return api.Problemf(http.StatusNotFound, "This work is not known: it ended long ago, or the service was restarted. Search again, and start it again for the tasks that are left.")
	}
	p := workPage{layout: c.layout(r, capital(copied.action), "/tasks"), Busy: !copied.ended, Fields: copied.fields}
	p.Status = tasksText(copied.count) + " so far."
	switch {
	case copied.ended && copied.err == nil:
		p.Status = "Done: " + tasksText(copied.count) + "."
	case copied.ended:
		p.Status = fmt.Sprintf("Stopped after %s: %v", tasksText(copied.count), copied.err)
		p.CanContinue = p.CanChange
	}
	return c.render(w, http.StatusOK, "work", p)
}

func (c *Console) changeStore(w http.ResponseWriter, r *http.Request) error {
	var err error
	switch r.PathValue("action") {
	case "pause":
		err = c.client.Pause(r.Context())
	case "resume":
		err = c.client.Resume(r.Context())
	default:
		return api.Problemf(http.StatusNotFound, "There is no such action.")
	}
	if err != nil {
		return err
	}
	c.api.Audit(r.Context(), r.PathValue("action"), "", 0)
	return c.back(w, r, "/?note=done")
}

func pathOf(id string) string { return url.PathEscape(id) }
