package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable"
)

const (
	defaultLimit = 50
	maxLimit     = 1000
)

// A page of tasks.
type taskPage struct {
	Tasks  []Task         `json:"tasks"`
	Cursor durable.Cursor `json:"cursor,omitempty"` // for the next page; absent on the last one
}

// FilterQuery are the parameters of a filter, in a URL or in a bulk command's body.
type FilterQuery struct {
	State     string     `json:"state"`
	Prefix    string     `json:"prefix"`
	Queue     string     `json:"queue"`
	Group     string     `json:"group"`
	DueBefore *time.Time `json:"due_before"`
	Error     string     `json:"error"`
}

// A Filter selects tasks. If Run is done or failed, it selects only the runs that ended so, for
// which the others are read, too.
type Filter struct {
	durable.Filter
	Run string
}

// Selects reports whether the filter selects a task that the embedded filter does.
func (f *Filter) Selects(info *durable.Info) bool {
	return f.Run == "" || (f.Run == "failed") == failed(info)
}

// failed reports whether a task is a finished run that failed.
func failed(info *durable.Info) bool { return info.Run != nil && !info.Run.Done }

// Filter converts the parameters.
func (q FilterQuery) Filter() (f Filter, err error) {
	var p fieldErrors
	switch q.State {
	case "":
	case "pending", "paused":
		f.State, f.Paused = durable.Pending, q.State == "paused"
	case "running":
		f.State = durable.Running
	case "dead":
		f.State = durable.Dead
	case "done", "failed":
		f.State, f.Run = durable.Past, q.State
	case "past":
		f.State = durable.Past
	default:
		p.add("/state", "is not pending, running, paused, dead, done, failed or past")
	}
	f.Prefix, f.Handler, f.Group, f.Error = q.Prefix, q.Queue, q.Group, q.Error
	if q.DueBefore != nil {
		f.To = *q.DueBefore
	}
	return f, p.err()
}

// parameters is URL.Query, but refuses what that leaves out: a list would then have all tasks.
func parameters(rawQuery string) (url.Values, error) {
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, Problemf(http.StatusBadRequest, "the query: %v", err)
	}
	return q, nil
}

// parseQuery returns the parameters of a list: the limit, the cursor, and those of a filter
// that are allowed.
func parseQuery(rawQuery string, allowed ...string) (q FilterQuery, limit int, cursor durable.Cursor, err error) {
	var p fieldErrors
	limit = defaultLimit
	fields := map[string]string{}
	query, err := parameters(rawQuery)
	if err != nil {
		return q, 0, "", err
	}
	for name, values := range query {
		v := values[len(values)-1]
		switch {
		case name == "cursor":
			cursor = durable.Cursor(v)
		case name == "limit":
			if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > maxLimit {
				p.add("/limit", "is not a number from 1 to 1000")
			}
		case slices.Contains(allowed, name):
			fields[name] = v
		default:
			p.add("/"+pointerEscaper.Replace(name), "is unknown")
		}
	}
	if err = p.err(); err == nil {
		b, _ := json.Marshal(fields) // texts
		err = decodeText(b, &q)
	}
	if err != nil {
		x := ProblemOf(err)
		x.Title, x.Status = http.StatusText(http.StatusBadRequest), http.StatusBadRequest
		err = x
	}
	return q, limit, cursor, err
}

// parseFilter is parseQuery for tasks.
func parseFilter(rawQuery string) (f Filter, limit int, cursor durable.Cursor, err error) {
	q, limit, cursor, err := parseQuery(rawQuery, "state", "prefix", "queue", "group", "due_before", "error")
	if err == nil {
		f, err = q.Filter()
	}
	return f, limit, cursor, err
}

// ParseFilter returns the filter in the parameters of a list of tasks.
func ParseFilter(v url.Values) (Filter, error) {
	f, _, _, err := parseFilter(v.Encode())
	return f, err
}

// maxReads is how many pages are read for one of which a Filter leaves tasks out.
const maxReads = 20

// Page is like durable.Client.Page.
func (a *API) Page(ctx context.Context, f *Filter, after durable.Cursor, limit int) (p durable.Page, err error) {
	p.Next = after
	for read := 1; ; read++ {
		part, err := a.client.Page(ctx, f.Filter, p.Next, limit-len(p.Tasks))
		if err != nil {
			return durable.Page{}, err
		}
		for i := range part.Tasks {
			if f.Selects(&part.Tasks[i]) {
				p.Tasks = append(p.Tasks, part.Tasks[i])
			}
		}
		if p.Next = part.Next; p.Next == "" || len(p.Tasks) == limit || f.Run == "" || read == maxReads {
			return p, nil
		}
	}
}

func (a *API) listTasks(w http.ResponseWriter, r *http.Request) error {
	f, limit, cursor, err := parseFilter(r.URL.RawQuery)
	if err != nil {
		return err
	}
	page, err := a.Page(r.Context(), &f, cursor, limit)
	if err != nil {
		return err
	}
	x := taskPage{Tasks: []Task{}, Cursor: page.Next}
	for i := range page.Tasks {
		x.Tasks = append(x.Tasks, Shown(&page.Tasks[i]))
	}
	writeJSON(w, http.StatusOK, x)
	return nil
}

// A bulkRequest is the body of a bulk command.
type bulkRequest struct {
	FilterQuery
	Limit int `json:"limit"` // at most so many tasks; required
}

// maxBulk bounds what one bulk command changes, so that it ends in time. A caller repeats
// it until the count is below its limit.
const maxBulk = 10_000

// bulk returns the handler of a command on all tasks that match a filter.
func (a *API) bulk(action string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		b, err := readBody(w, r, maxTask)
		if err != nil {
			return err
		}
		var x bulkRequest
		if err := decodeStrict(b, &x); err != nil {
			return err
		}
		f, err := x.Filter()
		if err != nil {
			return err
		}
		if f == (Filter{}) {
			return Problemf(http.StatusUnprocessableEntity, "an empty filter is refused: name at least one of state, prefix, queue, due_before and error")
		}
		if x.Limit < 1 || x.Limit > maxBulk {
			var p fieldErrors
			p.add("/limit", "is not a number from 1 to "+strconv.Itoa(maxBulk))
			return p.err()
		}
		n, err := a.runBulk(r.Context(), action, f, x.Limit)
		if n > 0 {
			a.audit(r.Context(), action, "", n)
		}
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, map[string]int{"count": n})
		return nil
	}
}

func (a *API) runBulk(ctx context.Context, action string, f Filter, limit int) (total int, err error) {
	var cursor durable.Cursor
	for total < limit {
		n, next, err := a.Bulk(ctx, action, &f, cursor, min(limit-total, maxLimit))
		total += n
		if cursor = next; err != nil || cursor == "" {
			return total, err
		}
	}
	return total, nil
}

// Bulk carries out a command on the next tasks that match a filter, at most limit: cancel,
// run, requeue or purge. It returns how many were changed, and the cursor for the next call,
// which is empty at the end. The first call completes the filter: what fails again between two
// calls is not requeued twice.
func (a *API) Bulk(ctx context.Context, action string, f *Filter, cursor durable.Cursor, limit int) (n int, next durable.Cursor, err error) {
	switch action {
	case "requeue":
		if f.State = durable.Dead; f.To.IsZero() {
			now, err := a.client.Store().Now(ctx, 0)
			if err != nil {
				return 0, "", err
			}
			f.To = now.Std().Add(time.Microsecond)
		}
	case "run":
		f.State = durable.Pending
	case "purge":
		f.State = cmp.Or(f.State, durable.Dead)
	}
	page, err := a.Page(ctx, f, cursor, limit)
	if err != nil || len(page.Tasks) == 0 {
		return 0, page.Next, err
	}
	var ids []string
	for i := range page.Tasks {
		x := &page.Tasks[i]
		if action == "run" && x.Paused || action == "cancel" && x.State > durable.Running {
			continue
		}
		ids = append(ids, x.ID)
	}
	n, err = a.ChangeAll(ctx, action, ids)
	return n, page.Next, err
}

// ChangeAll carries out the command on tasks by their ids.
func (a *API) ChangeAll(ctx context.Context, action string, ids []string) (n int, err error) {
	moves := make([]durable.Move, len(ids))
	for i, id := range ids {
		moves[i] = durable.Move{ID: id, When: durable.After(0)}
	}
	var outcomes []durable.Outcome
	switch action {
	case "cancel":
		outcomes, err = a.client.CancelBatch(ctx, ids)
	case "run":
		outcomes, err = a.client.RescheduleBatch(ctx, moves)
	case "requeue":
		outcomes, err = a.client.RequeueBatch(ctx, moves)
	case "purge":
		outcomes, err = a.client.PurgeBatch(ctx, ids)
	default:
		return 0, Problemf(http.StatusNotFound, "there is no action %.40q", action)
	}
	for _, o := range outcomes {
		if o != durable.Absent && o != durable.Unknown {
			n++
		}
	}
	return n, err
}

// Stats are the numbers of tasks and the counters: see store.Stats.
type Stats struct {
	Pending   int64    `json:"pending"`
	Overdue   int64    `json:"overdue"`
	Running   int64    `json:"running"`
	Dead      int64    `json:"dead"`
	Kept      int64    `json:"kept"` // records of finished runs, and one more for each key with some
	Unknown   int64    `json:"unknown"`
	Late      Duration `json:"late"`
	Paused    bool     `json:"paused"` // the whole store
	Claimed   int64    `json:"claimed"`
	Done      int64    `json:"done"`
	Retried   int64    `json:"retried"`
	Died      int64    `json:"died"`
	Crashed   int64    `json:"crashed"`
	Released  int64    `json:"released"`
	Cancelled int64    `json:"cancelled"`
}

func (a *API) stats(w http.ResponseWriter, r *http.Request) error {
	st, err := a.client.Stats(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, Stats{st.Pending, st.Overdue, st.Running, st.Dead, st.Past, st.Unknown, Duration(st.Late), st.Paused > 0,
		st.Claimed, st.Done, st.Retried, st.Died, st.Crashed, st.Released, st.Cancelled})
	return nil
}

// An upcoming run is a task and when it runs.
type upcomingRun struct {
	Key   string    `json:"key"`
	Queue string    `json:"queue"`
	Due   time.Time `json:"due"`
}

// maxSpan bounds the span of upcoming.
const maxSpan = 366 * 24 * time.Hour

// upcoming lists what falls due within a time, with each repetition.
func (a *API) upcoming(w http.ResponseWriter, r *http.Request) error {
	q, err := parameters(r.URL.RawQuery)
	if err != nil {
		return err
	}
	span := time.Hour
	if s := q.Get("for"); s != "" {
		var d Duration
		if err := d.UnmarshalText([]byte(s)); err != nil || time.Duration(d) > maxSpan {
			return Problemf(http.StatusBadRequest, "for is not a duration up to 8784h, such as 1h")
		}
		span = time.Duration(d)
	}
	q.Del("for")
	_, limit, _, err := parseQuery(q.Encode())
	if err != nil {
		return err
	}
	list, err := a.client.Upcoming(r.Context(), time.Now().Add(span), limit)
	if err != nil {
		return err
	}
	out := make([]upcomingRun, len(list))
	for i, x := range list {
		out[i] = upcomingRun{x.Key, x.Handler, x.Due}
	}
	writeJSON(w, http.StatusOK, map[string]any{"upcoming": out})
	return nil
}

func (a *API) listRuns(w http.ResponseWriter, r *http.Request) error {
	q, limit, cursor, err := parseQuery(r.URL.RawQuery, "queue", "prefix", "group", "error")
	if err != nil {
		return err
	}
	f := durable.Filter{Handler: q.Queue, Prefix: q.Prefix, Group: q.Group, Error: q.Error}
	page, err := a.client.RunsPage(r.Context(), f, cursor, limit)
	if err != nil {
		return err
	}
	out := make([]Run, len(page.Runs))
	for i := range page.Runs {
		out[i] = runOf(&page.Runs[i])
	}
	writeJSON(w, http.StatusOK, struct {
		Runs   []Run          `json:"runs"`
		Cursor durable.Cursor `json:"cursor,omitempty"`
	}{out, page.Next})
	return nil
}
