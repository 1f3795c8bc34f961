package tasks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
	"github.com/tickless/tickless/service/api"
)

// remote has the tasks of a service, over its API.
type remote struct {
	url, token string
	now        time.Time // of its latest answer, to the second
}

func newRemote(address, tokenFile string) (*remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, cli.UsageError{Err: errors.New("--url must be http or https, with a host and without a user")}
	}
	s := &remote{url: strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")}
	if tokenFile = cmp.Or(tokenFile, os.Getenv("TICKLESS_TOKEN_FILE")); tokenFile != "" {
		b, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, err
		}
		words := strings.Fields(string(b))
		if len(words) == 0 {
			return nil, fmt.Errorf("%s has no token", tokenFile)
		}
		s.token = words[len(words)-1]
	}
	return s, nil
}

// maxAnswer bounds an answer: a page of 1000 tasks of 64 KiB.
const maxAnswer = 128 << 20

// do sends a request, and decodes the answer into answer unless it is nil. headers are names
// and values. An error of the service is an api.Problem, or a durable.ErrInvalid.
func (s *remote) do(ctx context.Context, method, path string, body, answer any, headers ...string) error {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+"/v1"+path, in)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	s.now, _ = http.ParseTime(resp.Header.Get("Date"))
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case resp.StatusCode < 300 && (answer == nil || len(b) == 0):
		return nil
	case resp.StatusCode < 300:
		if err := json.Unmarshal(b, answer); err != nil {
			return fmt.Errorf("%s is not a tickless service: %w", s.url, err)
		}
		return nil
	}
	var p api.Problem
	if json.Unmarshal(b, &p) != nil || p.Status != resp.StatusCode {
		return fmt.Errorf("%s answered %s", s.url, resp.Status)
	}
	for _, e := range p.Errors[min(1, len(p.Errors)):] { // Detail has the first
		p.Detail += "; " + strings.TrimPrefix(e.Pointer, "/") + " " + e.Detail
	}
	switch p.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %s", durable.ErrInvalid, p.Detail)
	}
	return &p
}

// statusOf returns the status of an error of the service, or 0.
func statusOf(err error) int {
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		return p.Status
	}
	return 0
}

// get sends a GET for something that must exist.
func (s *remote) get(ctx context.Context, path string, answer any) error {
	err := s.do(ctx, http.MethodGet, path, nil, answer)
	if statusOf(err) == http.StatusNotFound {
		return durable.ErrNotFound
	}
	return err
}

func pathOf(id string) string { return "/tasks/" + url.PathEscape(id) }

var errNotInAPI = fmt.Errorf("%w: a service does not have this: give its store, with --file, --redis or --postgres", durable.ErrInvalid)

// stateName returns a filter's state as the API has it.
func stateName(f *durable.Filter) string {
	switch {
	case f.Paused:
		return "paused"
	case f.State != 0:
		return f.State.String()
	}
	return ""
}

// filterOf returns a filter as the API has it.
func filterOf(f *durable.Filter) (x struct {
	api.FilterQuery
	Limit int `json:"limit"`
}, err error) {
	x.State, x.Prefix, x.Queue, x.Group, x.Error = stateName(f), f.Prefix, f.Handler, f.Group, f.Error
	if !f.To.IsZero() {
		x.DueBefore = &f.To
	}
	if !f.From.IsZero() {
		err = fmt.Errorf("--from: %w", errNotInAPI)
	}
	return x, err
}

// query returns the parameters of a list.
func query(f *durable.Filter, after durable.Cursor, limit int) (string, error) {
	x, err := filterOf(f)
	v := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"state": x.State, "prefix": x.Prefix, "queue": x.Queue, "group": x.Group, "error": x.Error, "cursor": string(after)} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if x.DueBefore != nil {
		v.Set("due_before", x.DueBefore.UTC().Format(time.RFC3339Nano))
	}
	return "?" + v.Encode(), err
}

func (s *remote) Page(ctx context.Context, f durable.Filter, after durable.Cursor, limit int) (p durable.Page, err error) {
	q, err := query(&f, after, limit)
	if err != nil {
		return p, err
	}
	var x struct {
		Tasks  []api.Task
		Cursor durable.Cursor
	}
	err = s.get(ctx, "/tasks"+q, &x)
	for i := range x.Tasks {
		p.Tasks = append(p.Tasks, infoOf(&x.Tasks[i]))
	}
	p.Next = x.Cursor
	return p, err
}

func (s *remote) Get(ctx context.Context, id string) (durable.Info, error) {
	var t api.Task
	err := s.get(ctx, pathOf(id), &t)
	info := infoOf(&t)
	if err == nil && info.State == durable.Past {
		var runs []durable.Run
		runs, err = s.Runs(ctx, t.Key)
		if i := slices.IndexFunc(runs, func(r durable.Run) bool { return r.Ended.Equal(t.Ended) }); i >= 0 {
			info.Run = &runs[i]
		}
	}
	return info, err
}

// infoOf converts a task of the API. Its body is the request, as in the store, except that
// secrets are dots.
func infoOf(t *api.Task) durable.Info {
	info := durable.Info{ID: t.Key, Attempts: t.Attempts, Paused: t.Paused, Task: durable.Task{Key: t.Key, Handler: t.Queue, Group: t.Group,
		Cron: t.Cron, Zone: t.Zone, Timeout: time.Duration(t.Timeout), MaxAttempts: t.MaxAttempts, Unique: time.Duration(t.UniqueFor)}}
	info.Version, _ = strconv.ParseInt(t.Version, 10, 64)
	if t.Every != nil {
		info.Task.Every = time.Duration(*t.Every)
	}
	r := callback.Request{URL: t.URL, Method: t.Method, Headers: t.Headers, Body: []byte(t.Body)}
	if t.BodyBase64 != "" {
		r.Body, _ = base64.StdEncoding.DecodeString(t.BodyBase64)
	}
	if info.Task.Body = r.Body; r.URL != "" {
		info.Task.Body = encodeRequest(&r)
	}
	if t.ExpiresIn != 0 {
		info.Task.Missed, info.Task.MissedAfter = durable.DeadMissed, time.Duration(t.ExpiresIn)
	}
	if k := t.Keep; k != nil {
		info.Task.Retention = durable.Retention{Runs: k.Runs, For: time.Duration(k.For)}
	}
	switch t.State {
	case "done", "failed":
		info.State = durable.Past
	case "paused":
		info.State = durable.Pending
	default:
		_ = info.State.UnmarshalText([]byte(t.State))
	}
	if info.State == durable.Dead {
		info.At = t.Ended
	}
	if t.Due != nil {
		info.Due = *t.Due
		if info.State == durable.Pending {
			info.At = *t.Due
		}
	}
	if info.Failures = t.Failures; len(info.Failures) == 0 && t.LastError != "" { // in a list
		info.Failures = []durable.Failure{{Error: t.LastError}}
	}
	if info.State == durable.Past {
		info.Run = &durable.Run{Key: t.Key, Handler: t.Queue, Done: t.State == "done", Ended: t.Ended, Attempts: t.Attempts, Failures: info.Failures}
	}
	return info
}

// encodeRequest returns a task's body as package callback makes it, without a check.
func encodeRequest(r *callback.Request) []byte {
	x := struct {
		URL     string            `json:"url"`
		Method  string            `json:"method,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
		Body    []byte            `json:"body64,omitempty"`
	}{r.URL, r.Method, r.Headers, r.Body}
	b, _ := json.Marshal(x)
	return b
}

func (s *remote) Explain(ctx context.Context, id string) (x durable.Explanation, err error) {
	var e api.Explanation
	if err = s.get(ctx, pathOf(id)+"/explain", &e); err != nil {
		return x, err
	}
	x = durable.Explanation{ID: e.Key, State: infoOf(&api.Task{State: e.State}).State, Now: e.Now}
	for _, r := range e.Reasons {
		reason := r.Reason
		for i := range r.Holders {
			reason.Holders = append(reason.Holders, durable.Holder{Worker: r.Holders[i].Worker, WorkerTask: workerTaskOf(&r.Holders[i])})
		}
		x.Reasons = append(x.Reasons, reason)
	}
	return x, nil
}

func workerTaskOf(t *api.RunningTask) durable.WorkerTask {
	return durable.WorkerTask{ID: t.Key, Handler: t.Queue, Since: t.Since, Lease: t.Lease}
}

func (s *remote) Runs(ctx context.Context, key string) ([]durable.Run, error) {
	p, err := s.readRuns(ctx, pathOf(key)+"/runs")
	return p.Runs, err
}

func (s *remote) RunsPage(ctx context.Context, f durable.Filter, after durable.Cursor, limit int) (durable.RunsPage, error) {
	q, err := query(&f, after, limit)
	if err != nil {
		return durable.RunsPage{}, err
	}
	return s.readRuns(ctx, "/runs"+q)
}

func (s *remote) readRuns(ctx context.Context, path string) (p durable.RunsPage, err error) {
	var x struct {
		Runs   []api.Run
		Cursor durable.Cursor
	}
	err = s.get(ctx, path, &x)
	for _, r := range x.Runs {
		run := durable.Run{Key: r.Key, Handler: r.Queue, Done: r.State == "done", Due: r.Due, Ended: r.Ended, Attempts: r.Attempts, Failures: r.Failures, Result: r.Answer}
		if r.Began != nil {
			run.Began = *r.Began
		}
		p.Runs = append(p.Runs, run)
	}
	p.Next = x.Cursor
	return p, err
}

func (s *remote) Upcoming(ctx context.Context, before time.Time, limit int) (runs []durable.UpcomingRun, err error) {
	var x struct {
		Upcoming []struct {
			Key, Queue string
			Due        time.Time
		}
	}
	err = s.get(ctx, fmt.Sprintf("/upcoming?limit=%d&for=%v", limit, max(0, time.Until(before))), &x)
	for _, r := range x.Upcoming {
		runs = append(runs, durable.UpcomingRun{Key: r.Key, Handler: r.Queue, Due: r.Due})
	}
	return runs, err
}

func (s *remote) Workers(ctx context.Context) (workers []durable.WorkerInfo, err error) {
	var x struct{ Workers []api.Worker }
	err = s.get(ctx, "/workers", &x)
	for _, w := range x.Workers {
		info := durable.WorkerInfo{ID: w.ID, Name: w.Name, Host: w.Host, PID: w.PID, Started: w.Started, Version: w.Version,
			Contact: w.Contact, Lost: w.Lost, Places: w.Places, Lease: time.Duration(w.Lease), Running: []durable.WorkerTask{}}
		for _, q := range w.Queues {
			info.Handlers = append(info.Handlers, durable.WorkerHandler{Handler: q.Queue, Running: q.Running, Places: q.Places, Rate: q.Rate})
		}
		for i := range w.Running {
			info.Running = append(info.Running, workerTaskOf(&w.Running[i]))
		}
		workers = append(workers, info)
	}
	return workers, err
}

func (s *remote) limits(ctx context.Context) (list []*handlerLimit, err error) {
	var x struct{ Queues []api.Queue }
	err = s.get(ctx, "/queues", &x)
	for _, q := range x.Queues {
		l := &handlerLimit{Handler: q.Queue, Concurrency: q.Concurrency, Rate: q.Rate, Note: q.Note}
		if g := q.ByGroup; g != nil {
			l.GroupConcurrency, l.GroupRate = g.Concurrency, g.Rate
		}
		if q.Paused {
			l.PausedSince = &q.Since
		}
		list = append(list, l)
	}
	return list, err
}

// changeQueue reads a queue, calls change, and writes the queue.
func (s *remote) changeQueue(ctx context.Context, name string, change func(q *api.Queue)) error {
	var q api.Queue
	path := "/queues/" + url.PathEscape(name)
	if err := s.do(ctx, http.MethodGet, path, nil, &q); err != nil {
		return err
	}
	change(&q)
	return s.do(ctx, http.MethodPut, path, q, nil)
}

func (s *remote) SetLimit(ctx context.Context, handler string, l durable.Limit) error {
	return s.changeQueue(ctx, handler, func(q *api.Queue) {
		q.Concurrency, q.Rate = l.Concurrency, l.Rate
		q.ByGroup = &api.GroupLimit{Concurrency: l.GroupConcurrency, Rate: l.GroupRate}
	})
}

func (s *remote) PauseHandler(ctx context.Context, handler, note string) error {
	return s.changeQueue(ctx, handler, func(q *api.Queue) { q.Paused, q.Note = true, note })
}

func (s *remote) ResumeHandler(ctx context.Context, handler string) error {
	return s.changeQueue(ctx, handler, func(q *api.Queue) { q.Paused, q.Note = false, "" })
}

func (s *remote) Pause(context.Context) error  { return fmt.Errorf("--all: %w", errNotInAPI) }
func (s *remote) Resume(context.Context) error { return fmt.Errorf("--all: %w", errNotInAPI) }

func (s *remote) summary(ctx context.Context) (h durable.Health, st durable.Stats, err error) {
	var x api.Stats
	err = s.get(ctx, "/stats", &x)
	h.Store = "service at " + s.url
	st.Pending, st.Overdue, st.Running, st.Dead, st.Past, st.Unknown, st.Late = x.Pending, x.Overdue, x.Running, x.Dead, x.Kept, x.Unknown, time.Duration(x.Late)
	st.Claimed, st.Done, st.Retried, st.Died, st.Crashed, st.Released, st.Cancelled = x.Claimed, x.Done, x.Retried, x.Died, x.Crashed, x.Released, x.Cancelled
	if x.Paused {
		st.Paused = 1
		h.Warnings = []string{"the store is paused"}
	}
	return h, st, err
}

// outcomes are the outcomes by their names.
var outcomes = func() map[string]durable.Outcome {
	names := map[string]durable.Outcome{}
	for o := durable.Unknown; o <= durable.Changed; o++ {
		names[o.String()] = o
	}
	return names
}()

// fieldsOf returns a task as the API has it.
func fieldsOf(t *durable.Task) (map[string]any, error) {
	if !t.Start.IsZero() || !t.End.IsZero() || t.Missed == durable.FireMissed || len(t.Headers) > 0 {
		return nil, fmt.Errorf("--start, --end, and --missed fire: %w", errNotInAPI)
	}
	if (t.Missed == durable.DeadMissed) != (t.MissedAfter != 0) {
		return nil, fmt.Errorf("%w: give --missed dead and --missed-after together", durable.ErrInvalid)
	}
	x := api.TaskOf(&durable.Info{Task: *t}).Request()
	x.Key = ""
	if x.URL == "" {
		return nil, fmt.Errorf("%w: the tasks of a service are calls: give --call URL", durable.ErrInvalid)
	}
	b, err := json.Marshal(x)
	fields := map[string]any{}
	return fields, cmp.Or(err, json.Unmarshal(b, &fields))
}

func (m *moment) addTo(fields map[string]any) {
	switch {
	case m == nil:
	case m.at.IsZero():
		fields["delay"] = m.after.String()
	default:
		fields["at"] = m.at
	}
}

func (s *remote) add(ctx context.Context, t *durable.Task, at *moment, replace, paused bool) (durable.Outcome, error) {
	fields, err := fieldsOf(t)
	if err != nil {
		return 0, err
	}
	if at.addTo(fields); paused {
		fields["paused"] = true
	}
	var headers []string
	if !replace {
		headers = []string{"If-None-Match", "*"}
	}
	out, err := s.change(ctx, http.MethodPut, pathOf(t.Key), fields, headers...)
	if statusOf(err) == http.StatusPreconditionFailed {
		return durable.Kept, nil
	}
	return out, err
}

// replace sends what differs as a merge patch, in which the parts that are dots are missing.
func (s *remote) replace(ctx context.Context, before *durable.Info, t *durable.Task, at *moment) (durable.Outcome, error) {
	old, err := fieldsOf(&before.Task)
	if err != nil {
		return 0, err
	}
	fields, err := fieldsOf(t)
	if err != nil {
		return 0, err
	}
	patch := mergePatch(old, fields)
	at.addTo(patch)
	out, err := s.change(ctx, http.MethodPatch, pathOf(t.Key), patch, "If-Match", strconv.Quote(strconv.FormatInt(before.Version, 10)))
	if statusOf(err) == http.StatusPreconditionFailed {
		return durable.Changed, nil
	}
	return out, err
}

// mergePatch returns the RFC 7396 patch from one object to another.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, ok := to[name]; !ok {
			patch[name] = nil
		}
	}
	for name, v := range to {
		a, isObject := from[name].(map[string]any)
		b, areObjects := v.(map[string]any)
		switch {
		case isObject && areObjects:
			if inner := mergePatch(a, b); len(inner) > 0 {
				patch[name] = inner
			}
		case from[name] != v:
			patch[name] = v
		}
	}
	return patch
}

// change sends a command on one task.
func (s *remote) change(ctx context.Context, method, path string, body any, headers ...string) (durable.Outcome, error) {
	x := struct{ Outcome string }{durable.Removed.String()} // without an answer
	if err := s.do(ctx, method, path, body, &x, headers...); err != nil {
		return durable.Unknown, err
	}
	return outcomes[x.Outcome], nil
}

func (s *remote) changeEach(ctx context.Context, command string, ids []string) (outcomes []durable.Outcome, err error) {
	for _, id := range ids {
		out, err := s.changeOne(ctx, command, id)
		if status := statusOf(err); status == http.StatusNotFound || status == http.StatusConflict {
			out, err = durable.Absent, nil
		}
		if err != nil {
			return outcomes, fmt.Errorf("%s: %w", escapeText(id), err)
		}
		outcomes = append(outcomes, out)
	}
	return outcomes, nil
}

func (s *remote) changeOne(ctx context.Context, command, id string) (durable.Outcome, error) {
	switch command {
	case "pause", "resume":
		return s.change(ctx, http.MethodPatch, pathOf(id), map[string]bool{"paused": command == "pause"})
	case "run", "requeue":
		return s.change(ctx, http.MethodPost, pathOf(id)+"/"+command, nil)
	}
	// DELETE cancels a task, and purges a dead letter.
	info, err := s.Get(ctx, id)
	switch {
	case errors.Is(err, durable.ErrNotFound):
		return durable.Absent, nil
	case err != nil:
		return durable.Unknown, err
	case (info.State == durable.Dead) != (command == "purge"):
		return durable.Absent, nil
	}
	return s.change(ctx, http.MethodDelete, pathOf(id), nil)
}

// maxStep is how many tasks one command changes. An interruption does not cut it short: its
// answer has the number.
const maxStep = 1000

func (s *remote) changeAll(ctx context.Context, command string, f durable.Filter, limit int, progress func(n int)) (total int, err error) {
	x, err := filterOf(&f)
	if err == nil && command == "requeue" && f.To.IsZero() { // what fails again meanwhile does not count
		if _, _, err = s.summary(ctx); err == nil {
			now := s.now.Add(time.Second)
			x.DueBefore = &now
		}
	}
	states := []string{x.State}
	if command == "cancel" && x.State == "" {
		states = []string{"pending", "running"}
	}
	for _, x.State = range states {
		for more := true; more && err == nil && (limit == 0 || total < limit); {
			x.Limit = maxStep
			if x.State == "running" { // these stay in the list
				x.Limit, more = 10*maxStep, false
			}
			if limit > 0 {
				x.Limit = min(x.Limit, limit-total)
			}
			var answer struct{ Count int }
			err = cmp.Or(s.do(context.WithoutCancel(ctx), http.MethodPost, "/tasks/"+command, x, &answer), ctx.Err())
			total += answer.Count
			more = more && answer.Count == x.Limit
			progress(total)
		}
	}
	return total, err
}
