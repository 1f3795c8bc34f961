package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/service/api"
)

type taskPage struct {
	layout
	Row           taskRow
	Info          durable.Info
	Task          api.Task
	Repeats       string
	Actions       []string
	Request, Body string
	Curl          string
	Editable      string // the task's JSON, or empty if it cannot be changed here
	Runs          []durable.Run
	Reasons       []api.Reason // why it waits, or where it runs
}

// maxBody is how much of a body a page shows.
const maxBody = 8 << 10

func (c *Console) task(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("key")
	info, err := c.api.Find(r.Context(), id)
	if err != nil {
		return err
	}
	t := api.Shown(&info)
	p := taskPage{layout: c.layout(r, shownID(id), "/tasks"), Row: rowOf(&info), Info: info, Task: t, Actions: actionsOn(t.State), Body: bodyText(&t)}
	if info.State != durable.Past { // the request of a finished run is not kept
		p.Request = requestText(&t)
	}
	if t.URL != "" {
		p.Curl = curl(&t)
	}
	switch {
	case t.Cron != "":
		p.Repeats = inWords(t.Cron, t.Zone)
	case t.Every != nil:
		p.Repeats = "every " + time.Duration(*t.Every).String()
	}
	if info.State <= durable.Running && t.URL != "" {
		b, err := json.MarshalIndent(t.Request(), "", "  ")
		if err != nil {
			return err
		}
		p.Editable = string(b)
	}
	if info.State <= durable.Running {
		e, err := c.api.Explain(r.Context(), id)
		if err != nil {
			return err
		}
		p.Reasons = e.Reasons
	}
	if p.Runs, err = c.client.Runs(r.Context(), id); err != nil {
		return err
	}
	p.Runs = p.Runs[:min(len(p.Runs), 25)]
	return c.render(w, http.StatusOK, "task", p)
}

func actionsOn(state string) []string {
	switch state {
	case "pending":
		return []string{"run", "pause", "cancel"}
	case "paused":
		return []string{"run", "resume", "cancel"}
	case "running":
		return []string{"cancel"}
	case "dead":
		return []string{"requeue", "purge"}
	}
	return nil
}

func fromNow(t time.Time) string {
	if d := time.Until(t); d >= 0 {
		return "in " + shortDuration(d)
	} else {
		return shortDuration(-d) + " ago"
	}
}

// requestText shows a request's first lines. Secrets are dots.
func requestText(t *api.Task) string {
	if t.URL == "" {
		return "A task of the handler " + t.Queue + ", which is not a call."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", orPost(t.Method), t.URL)
	for _, k := range slices.Sorted(maps.Keys(t.Headers)) {
		fmt.Fprintf(&b, "%s: %s\n", k, t.Headers[k])
	}
	return b.String()
}

func orPost(method string) string {
	if method == "" {
		return "POST"
	}
	return method
}

// bodyText shows a body as text or as JSON, cut.
func bodyText(t *api.Task) string {
	if t.BodyBase64 != "" {
		return "base64: " + cutBytes(t.BodyBase64)
	}
	var v any
	if json.Unmarshal([]byte(t.Body), &v) == nil {
		if b, err := json.MarshalIndent(v, "", "  "); err == nil {
			return cutBytes(string(b))
		}
	}
	return cutBytes(t.Body)
}

func cutBytes(s string) string {
	if len(s) <= maxBody {
		return s
	}
	end := maxBody
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + fmt.Sprintf("\n… %d bytes more", len(s)-end)
}

// curl returns the command that schedules the task through the API.
func curl(t *api.Task) string {
	b, err := json.Marshal(t.Request())
	if err != nil {
		return ""
	}
	return fmt.Sprintf("curl -X PUT \"$TICKLESS/v1/tasks/%s\" -H \"Authorization: Bearer $TOKEN\" \\\n  -H 'Content-Type: application/json' -d '%s'",
		pathOf(t.Key), strings.ReplaceAll(string(b), "'", `'\''`))
}

// changeTask carries out the button of a task's page.
func (c *Console) changeTask(w http.ResponseWriter, r *http.Request) error {
	ctx, id, action := r.Context(), r.PathValue("key"), r.PathValue("action")
	path := "/tasks/" + pathOf(id)
	var outcome durable.Outcome
	var err error
	switch action {
	case "run":
		outcome, err = c.api.RunNow(ctx, id)
	case "pause":
		outcome, err = c.client.PauseTask(ctx, id)
	case "resume":
		outcome, err = c.client.ResumeTask(ctx, id)
	case "cancel":
		outcome, err = c.client.Cancel(ctx, id)
	case "requeue":
		outcome, err = c.client.Requeue(ctx, id, durable.After(0))
	case "purge":
		outcome, err = c.client.Purge(ctx, id)
	case "edit":
		var t api.Task
		if t, err = api.DecodeTask([]byte(r.PostForm.Get("task"))); err == nil {
			outcome, err = c.api.Replace(ctx, id, &t, r.PostForm.Get("version"))
		}
	default:
		return api.Problemf(http.StatusNotFound, "There is no such action.")
	}
	if err != nil {
		return err
	}
	if outcome == durable.Absent {
		return api.Problemf(http.StatusConflict, "The task is gone, or is in another state now.")
	}
	c.api.Audit(ctx, action, id, 1)
	if outcome == durable.Removed {
		path = "/tasks"
	}
	note := outcome.String()
	if notes[note] == "" {
		note = "done"
	}
	return c.back(w, r, path+"?note="+note)
}

type newPage struct {
	layout
	Editable string
}

const exampleTask = `{
  "url": "https://example.com/hook",
  "body": "{\"hello\":\"world\"}",
  "headers": {"Content-Type": "application/json"},
  "delay": "1m"
}`

func (c *Console) newTask(w http.ResponseWriter, r *http.Request) error {
	return c.render(w, http.StatusOK, "new", newPage{c.layout(r, "New task", "/tasks"), exampleTask})
}

func (c *Console) createTask(w http.ResponseWriter, r *http.Request) error {
	text := r.PostForm.Get("task")
	t, err := api.DecodeTask([]byte(text))
	if err == nil {
		if t.Key == "" {
			t.Key = durable.NewKey()
		}
		err = c.api.Create(r.Context(), &t)
	}
	if err == nil {
		c.api.Audit(r.Context(), "schedule", t.Key, 1)
		return c.back(w, r, "/tasks/"+pathOf(t.Key)+"?note=created")
	}
	p := newPage{c.layout(r, "New task", "/tasks"), text}
	x := api.ProblemOf(err)
	p.Problem = x.Detail
	return c.render(w, x.Status, "new", p)
}
