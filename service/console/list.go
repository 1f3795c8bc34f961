package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/service/api"
)

const pageSize = 50

// filterFields are the parameters of a list's filter.
var filterFields = []string{"state", "prefix", "queue", "group", "error", "due_before"}

// A query is what the list of tasks shows: the parameters of its filter, and its cursor.
type query struct{ url.Values }

type field struct{ Name, Value string }

func queryOf(v url.Values) query {
	q := query{url.Values{}}
	for _, name := range append(filterFields, "cursor") {
		if x := v.Get(name); x != "" {
			q.Set(name, x)
		}
	}
	return q
}

// Fields are the parameters of the filter.
func (q query) Fields() (list []field) {
	for _, name := range filterFields {
		if q.Has(name) {
			list = append(list, field{name, q.Get(name)})
		}
	}
	return list
}

func (q query) link(path string) string {
	if len(q.Values) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// A taskRow is a task in a list.
type taskRow struct {
	ID, Name, Path, State, Time, Queue, What, LastError string
	Attempts                                            int
}

func rowOf(info *durable.Info) taskRow {
	t := api.Shown(info)
	row := taskRow{ID: info.ID, Name: shownID(t.Key), Path: pathOf(t.Key), State: t.State, Queue: t.Queue,
		What: cut(orPost(t.Method)+" "+t.URL, 100), LastError: cut(t.LastError, 120), Attempts: t.Attempts}
	if t.URL == "" {
		row.What = cut(t.Body, 100)
	}
	if row.Time = formatTime(t.Ended); t.Due != nil {
		row.Time = formatTime(*t.Due)
	}
	return row
}

// shownID shows what a dead letter or a requeued run of a repeating task is.
func shownID(id string) string {
	key, rest, isRun := strings.Cut(id, "\x00")
	switch {
	case !isRun:
		return key
	case rest == "":
		return key + " (failed runs)"
	}
	return key + " (run again)"
}

// cut returns the beginning of a text as one line of valid UTF-8.
func cut(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	if utf8.RuneCountInString(s) > n {
		s = string([]rune(s)[:n-1]) + "…"
	}
	return s
}

type tab struct {
	Name, Count, Link string
	Here              bool
}

type tasksPage struct {
	layout
	Query    query
	Tabs     []tab
	Queues   []string
	Tasks    []taskRow
	TimeName string
	Actions  []string
	Next     string
}

// actionsOf are the bulk commands on tasks of a state.
func actionsOf(state string) []string {
	switch state {
	case "dead":
		return []string{"requeue", "purge"}
	case "done", "failed":
		return []string{"purge"}
	case "running":
		return []string{"cancel"}
	}
	return []string{"run", "cancel"}
}

var timeNames = map[string]string{"dead": "Died", "done": "Ended", "failed": "Ended", "running": "Due", "pending": "Next attempt", "paused": "Next attempt"}

func (c *Console) tasks(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r.URL.Query())
	if !q.Has("state") {
		q.Set("state", "pending")
	}
	here, cursor := q.Get("state"), q.Get("cursor")
	q.Del("cursor")
	p := tasksPage{layout: c.layout(r, "Tasks", "/tasks"), Query: q, Queues: c.api.QueueNames(), TimeName: timeNames[here], Actions: actionsOf(here)}
	st, err := c.client.Stats(r.Context())
	if err != nil {
		return err
	}
	counts := map[string]string{"pending": digits(st.Pending), "running": digits(st.Running), "dead": digits(st.Dead)}
	for _, state := range []string{"pending", "running", "paused", "dead", "done", "failed"} {
		other := queryOf(q.Values)
		other.Set("state", state)
		p.Tabs = append(p.Tabs, tab{state, counts[state], other.link("/tasks"), state == here})
	}
	f, err := api.ParseFilter(q.Values)
	if err != nil {
		return err
	}
	page, err := c.api.Page(r.Context(), &f, durable.Cursor(cursor), pageSize)
	if err != nil {
		return err
	}
	for i := range page.Tasks {
		p.Tasks = append(p.Tasks, rowOf(&page.Tasks[i]))
	}
	if page.Next != "" {
		next := queryOf(q.Values)
		next.Set("cursor", string(page.Next))
		p.Next = next.link("/tasks")
	}
	return c.render(w, http.StatusOK, "tasks", p)
}

// A deadGroup are the dead letters of a queue with the same error.
type deadGroup struct {
	Queue, Error, Link, Latest string
	Count                      int
	latest                     time.Time
}

type deadPage struct {
	layout
	Groups  []*deadGroup
	Partial string
}

func (c *Console) dead(w http.ResponseWriter, r *http.Request) error {
	p := deadPage{layout: c.layout(r, "Dead letters", "/dead")}
	type result struct {
		groups []*deadGroup
		read   int
		more   bool
	}
	x, err := cache(c, "dead", 5*time.Second, func() (x result, err error) {
		byName := map[[2]string]*deadGroup{}
		x.more, err = readTasks(r.Context(), c.client, durable.Filter{State: durable.Dead}, new(durable.Cursor), time.Now().Add(readTime), func(info *durable.Info) (bool, error) {
			addDead(byName, info)
			x.read++
			return false, nil
		})
		for _, g := range byName {
			g.Latest = formatTime(g.latest)
			x.groups = append(x.groups, g)
		}
		slices.SortFunc(x.groups, func(a, b *deadGroup) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Error, b.Error))
		})
		return x, err
	})
	if err != nil {
		return err
	}
	p.Groups = x.groups[:min(len(x.groups), 100)]
	if x.more {
		p.Partial = "Of the " + digits(int64(x.read)) + " oldest dead letters; there are more."
	}
	return c.render(w, http.StatusOK, "dead", p)
}

func addDead(groups map[[2]string]*deadGroup, info *durable.Info) {
	text := "unknown"
	if n := len(info.Failures); n > 0 {
		text = info.Failures[n-1].Error
	}
	common := commonError(text)
	id := [2]string{info.Task.Handler, common}
	g := groups[id]
	if g == nil {
		q := queryOf(url.Values{"state": {"dead"}, "queue": {info.Task.Handler}, "error": {common}})
		g = &deadGroup{Queue: info.Task.Handler, Error: cut(common, 160), Link: q.link("/tasks")}
		groups[id] = g
	}
	g.Count++
	if info.At.After(g.latest) {
		g.latest = info.At
	}
}

// commonError returns the part of an error's text that other tasks with the same error
// usually share: for a call, what follows the URL; otherwise its beginning, up to a digit or
// a quotation.
func commonError(text string) string {
	text = strings.ToValidUTF8(text, "")
	if method, rest, ok := strings.Cut(text, " http"); ok && strings.ToUpper(method) == method {
		if _, rest, ok = strings.Cut(rest, ": "); ok {
			text = rest
		}
	}
	if end := strings.IndexAny(text, "\"'`"); end >= 8 {
		text = text[:end]
	}
	return strings.TrimSpace(text)
}
