package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/tickless/tickless/durable"
)

// An answer to a command on a task.
type outcomeAnswer struct {
	Task
	Outcome string `json:"outcome"`
}

// store schedules a task.
func (a *API) store(ctx context.Context, t *Task, opts ...durable.ScheduleOption) (durable.Outcome, error) {
	item, err := a.item(t)
	if err != nil {
		return durable.Unknown, err
	}
	outcome, err := a.client.Schedule(ctx, item.Task, item.When, t.options(opts...)...)
	return again(ctx, outcome, err)
}

// schedule schedules one task and answers with it.
func (a *API) schedule(w http.ResponseWriter, r *http.Request, t *Task, opts ...durable.ScheduleOption) error {
	var info durable.Info
	outcome, err := a.store(r.Context(), t, append(opts, durable.ReturnInfo(&info))...)
	switch {
	case err != nil:
		return err
	case outcome == durable.Kept:
		return a.answerKept(w, r, t)
	case outcome == durable.Changed:
		return errChanged
	}
	a.audit(r.Context(), "schedule", t.Key, 1)
	if info.ID == "" { // the store has not returned it
		return a.answerTask(w, r, t.Key, outcome)
	}
	writeTask(w, r, &info, outcome)
	return nil
}

// answerTask answers with the present state of a task after a command.
func (a *API) answerTask(w http.ResponseWriter, r *http.Request, key string, outcome durable.Outcome) error {
	info, err := a.Find(r.Context(), key)
	if errors.Is(err, durable.ErrNotFound) { // it ran meanwhile, and is not kept
		writeJSON(w, statusOf(outcome), outcomeAnswer{Task{Key: key, State: "done"}, outcome.String()})
		return nil
	}
	if err != nil {
		return err
	}
	writeTask(w, r, &info, outcome)
	return nil
}

// writeTask answers with a task.
func writeTask(w http.ResponseWriter, r *http.Request, info *durable.Info, outcome durable.Outcome) {
	setETag(w, info)
	prefix, _, _ := strings.Cut(r.RequestURI, r.URL.EscapedPath()) // that http.StripPrefix has stripped
	w.Header().Set("Location", prefix+"/v1/tasks/"+url.PathEscape(info.ID))
	writeJSON(w, statusOf(outcome), outcomeAnswer{Shown(info), outcome.String()})
}

func statusOf(outcome durable.Outcome) int {
	if outcome == durable.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// answerKept answers a command that an existing task prevented.
func (a *API) answerKept(w http.ResponseWriter, r *http.Request, t *Task) error {
	info, err := a.Find(r.Context(), t.Key)
	if err != nil && !errors.Is(err, durable.ErrNotFound) {
		return err
	}
	switch {
	case t.hash != "" && err == nil && info.State != durable.Past && info.Task.Headers[requestHeader] != t.hash:
		return Problemf(http.StatusUnprocessableEntity, "the Idempotency-Key was used for another request")
	case t.hash != "" || t.UniqueFor > 0 && r.Header.Get("If-None-Match") == "":
		return a.answerTask(w, r, t.Key, durable.Kept)
	}
	return Problemf(http.StatusPreconditionFailed, "the key %.80q has a task already", t.Key)
}

// Find returns the task with a key or, if it is done, its latest run.
func (a *API) Find(ctx context.Context, key string) (durable.Info, error) {
	info, err := a.client.Get(ctx, key)
	if !errors.Is(err, durable.ErrNotFound) {
		return info, err
	}
	runs, runsErr := a.client.Runs(ctx, key)
	if runsErr != nil || len(runs) == 0 {
		return info, cmp.Or(runsErr, err)
	}
	run := runs[0]
	return durable.Info{ID: key, State: durable.Past, Attempts: run.Attempts, Failures: run.Failures, Run: &run,
		Task: durable.Task{Key: run.Key, Handler: run.Handler}}, nil
}

func (a *API) putTask(w http.ResponseWriter, r *http.Request) error {
	b, err := readBody(w, r, maxTask)
	if err != nil {
		return err
	}
	t, err := DecodeTask(b)
	if err != nil {
		return err
	}
	if t.Key != "" && t.Key != keyOf(r) {
		return Problemf(http.StatusUnprocessableEntity, "the keys in the path and in the body differ")
	}
	t.Key = keyOf(r)
	opts, err := a.conditions(r)
	if err != nil {
		return err
	}
	return a.schedule(w, r, &t, opts...)
}

// A batchResult is the result for one task of a batch, in the order of the request.
type batchResult struct {
	Key     string   `json:"key,omitempty"`
	Outcome string   `json:"outcome,omitempty"`
	Error   *Problem `json:"error,omitempty"`
}

func (a *API) postTasks(w http.ResponseWriter, r *http.Request) error {
	b, err := readBody(w, r, maxTasks)
	if err != nil {
		return err
	}
	if err := checkText(b); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return Problemf(http.StatusBadRequest, "the body is not the expected JSON: %.200s", err)
	}
	if tasks, isBatch := fields["tasks"]; isBatch {
		delete(fields, "tasks")
		return a.postBatch(w, r, tasks, fields)
	}
	if len(b) > maxTask {
		return Problemf(http.StatusRequestEntityTooLarge, "the task has more than %d bytes", maxTask)
	}
	t, err := DecodeTask(b)
	if err != nil {
		return err
	}
	if t.Key != "" {
		return Problemf(http.StatusUnprocessableEntity, "a POST makes the key; for a key of your own, use PUT /v1/tasks/{key}")
	}
	idempotencyKey := r.Header.Get("Idempotency-Key")
	if idempotencyKey == "" {
		t.Key = durable.NewKey()
		return a.schedule(w, r, &t)
	}
	if len(idempotencyKey) > 256 {
		return Problemf(http.StatusBadRequest, "the Idempotency-Key has more than 256 bytes")
	}
	t.hash = hashOf(&t)
	t.Key = keyFor(idempotencyKey)
	return a.schedule(w, r, &t, durable.OnlyNew())
}

// idempotency is how long an Idempotency-Key is remembered after its task is done.
const idempotency = 24 * time.Hour

// postBatch schedules the tasks of a batch. others are the other fields of the request.
func (a *API) postBatch(w http.ResponseWriter, r *http.Request, list json.RawMessage, others map[string]json.RawMessage) error {
	if r.Header.Get("Idempotency-Key") != "" {
		return Problemf(http.StatusUnprocessableEntity, "an Idempotency-Key is for one task: give the tasks of a batch keys of your own")
	}
	var p fieldErrors
	for name := range others {
		p.add("/"+pointerEscaper.Replace(name), "is unknown beside tasks")
	}
	var tasks []json.RawMessage
	if err := json.Unmarshal(list, &tasks); err != nil || len(tasks) < 1 || len(tasks) > MaxBatch {
		p.add("/tasks", fmt.Sprintf("is not a list of 1 to %d tasks", MaxBatch))
	}
	if err := p.err(); err != nil {
		return err
	}
	results := make([]batchResult, len(tasks))
	type part struct {
		items   []durable.Item
		indexes []int
	}
	var parts [2]part // the second one has the paused tasks
	for i := range tasks {
		var t Task
		var item durable.Item
		err := decodeText(tasks[i], &t)
		if t.Key == "" {
			t.Key = durable.NewKey()
		}
		results[i].Key = t.Key
		if err == nil {
			item, err = a.item(&t)
		}
		if err == nil {
			// One invalid task refuses the whole call of ScheduleBatch, so each is
			// checked alone.
			_, err = item.Stored()
		}
		if err != nil {
			results[i].Error = ProblemOf(err).under(fmt.Sprint("/tasks/", i))
			continue
		}
		p := &parts[0]
		if t.Paused {
			p = &parts[1]
		}
		p.items, p.indexes = append(p.items, item), append(p.indexes, i)
	}
	for k, p := range parts {
		if len(p.items) == 0 {
			continue
		}
		t := Task{Paused: k == 1}
		outcomes, err := a.client.ScheduleBatch(r.Context(), p.items, t.options()...)
		var unknown *durable.UnknownError
		if errors.As(err, &unknown) && r.Context().Err() == nil {
			outcomes, err = unknown.Again(r.Context())
		}
		n := 0
		for j, i := range p.indexes {
			if j < len(outcomes) && outcomes[j] != durable.Unknown {
				results[i].Outcome = outcomes[j].String()
				n++
			} else {
				results[i].Error = ProblemOf(cmp.Or(err, durable.ErrNotDone))
			}
		}
		a.audit(r.Context(), "schedule", "", n)
	}
	writeJSON(w, http.StatusOK, map[string]any{"tasks": results})
	return nil
}

func (a *API) getTask(w http.ResponseWriter, r *http.Request) error {
	info, err := a.Find(r.Context(), keyOf(r))
	if err != nil {
		return err
	}
	setETag(w, &info)
	t := Shown(&info)
	t.Failures = info.Failures
	writeJSON(w, http.StatusOK, t)
	return nil
}

func (a *API) patchTask(w http.ResponseWriter, r *http.Request) error {
	b, err := readBody(w, r, maxTask, "application/merge-patch+json")
	if err != nil {
		return err
	}
	var patch map[string]json.RawMessage
	if err := checkText(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &patch); err != nil || patch == nil {
		return Problemf(http.StatusBadRequest, "a merge patch is a JSON object")
	}
	var p fieldErrors
	if checkFields(b, reflect.TypeFor[Task](), "", &p); len(p.list) > 0 {
		return p.err()
	}
	version, err := a.ifMatch(r)
	if err != nil {
		return err
	}
	outcome := durable.Changed
	for try := 0; outcome == durable.Changed; try++ {
		if outcome, err = a.applyPatch(r.Context(), keyOf(r), version, maps.Clone(patch)); err != nil {
			return err
		}
		switch {
		case outcome == durable.Absent:
			return durable.ErrNotFound
		case outcome == durable.Changed && version != 0:
			return errChanged
		case outcome == durable.Changed && try == maxPatchTries:
			return Problemf(http.StatusConflict, "others change the task all the time")
		}
	}
	a.audit(r.Context(), "patch", keyOf(r), 1)
	return a.answerTask(w, r, keyOf(r), outcome)
}

// maxPatchTries is how often a patch is applied again because another client has changed the task
// after it was read.
const maxPatchTries = 20

// applyPatch reads the task, applies the patch and writes it back. The outcome is Changed if the
// task has another version, or if another client has changed it meanwhile.
func (a *API) applyPatch(ctx context.Context, key string, version int64, patch map[string]json.RawMessage) (outcome durable.Outcome, err error) {
	info, err := a.client.Get(ctx, key)
	switch {
	case errors.Is(err, durable.ErrNotFound) && version != 0:
		return durable.Changed, nil
	case err != nil:
		return 0, err
	case version != 0 && info.Version != version:
		return durable.Changed, nil
	}
	if info.State == durable.Dead {
		return 0, Problemf(http.StatusConflict, "the task is a dead letter: requeue it first, or PUT a new task")
	}
	if info.NextTask != nil { // a change of what follows the running task builds on the one before
		info.Task = *info.NextTask
	}
	before := TaskOf(&info)
	paused := before.Paused
	if v, ok := patch["paused"]; ok {
		paused = false // if it is null
		if json.Unmarshal(v, &paused) != nil {
			var p fieldErrors
			p.add("/paused", "is not true or false")
			return 0, p.err()
		}
		delete(patch, "paused")
	}
	if len(patch) > 0 {
		if outcome, err = a.patchFields(ctx, &info, before.Request(), patch); err != nil || outcome == durable.Changed {
			return outcome, err
		}
	}
	switch {
	case paused == before.Paused && len(patch) > 0:
		return outcome, nil
	case paused == before.Paused:
		return durable.Kept, nil
	case paused:
		outcome, err = a.client.PauseTask(ctx, key)
	default:
		outcome, err = a.client.ResumeTask(ctx, key)
	}
	return again(ctx, outcome, err)
}

// patchFields writes the task with the changed fields. A delay or a time alone moves it.
func (a *API) patchFields(ctx context.Context, info *durable.Info, before Task, patch map[string]json.RawMessage) (durable.Outcome, error) {
	fields := map[string]json.RawMessage{}
	b, err := json.Marshal(before)
	if err == nil {
		err = json.Unmarshal(b, &fields)
	}
	if err != nil {
		return 0, err
	}
	isSet := func(name string) bool { v, ok := patch[name]; return ok && string(v) != "null" }
	isNull := func(name string) bool { return string(patch[name]) == "null" }
	repeats := before.Cron != "" && !isNull("cron") || before.Every != nil && !isNull("every")
	switch newTime, newPeriod := isSet("delay") || isSet("at"), isSet("cron") || isSet("every"); {
	case newTime && !newPeriod && repeats:
		return a.moveRepeating(ctx, info, patch)
	case newTime || newPeriod:
		for _, name := range []string{"delay", "at", "cron", "every"} {
			delete(fields, name)
		}
		if !isSet("cron") {
			delete(fields, "zone")
		}
	case !repeats: // it keeps its time
		at := before.next
		if info.State == durable.Running {
			at = &info.Next
		}
		if at == nil || at.IsZero() {
			return 0, Problemf(http.StatusConflict, "the task is %s: say with delay or at when it runs again", TaskOf(info).State)
		}
		delete(fields, "zone")
		delete(patch, "at")
		if fields["at"], err = json.Marshal(at); err != nil {
			return 0, err
		}
	}
	if isSet("body") {
		delete(fields, "body_base64")
	} else if isSet("body_base64") {
		delete(fields, "body")
	}
	if err := mergePatch(fields, patch); err != nil {
		return 0, err
	}
	if b, err = json.Marshal(fields); err != nil {
		return 0, err
	}
	t, err := DecodeTask(b)
	if err != nil {
		return 0, err
	}
	if t.Key != info.ID {
		return 0, Problemf(http.StatusUnprocessableEntity, "a task's key cannot be changed")
	}
	t.unmask(&before)
	return a.store(ctx, &t, durable.IfVersion(info.Version))
}
