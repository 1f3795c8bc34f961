package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"sync"

	"github.com/tickless/tickless/durable"
)

// versionOf returns a hash of what clients can change of a task. Attempts do not change it.
func versionOf(info *durable.Info) string {
	if info.State == durable.Past {
		return ""
	}
	t := TaskOf(info).Request()
	if !t.repeats() {
		t.At = &info.Due // a retry is due later, but nobody has changed the task
	}
	b, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(b, " %v %v", info.Following, info.Next))
	return fmt.Sprintf("%x", sum[:8])
}

func setETag(w http.ResponseWriter, info *durable.Info) {
	if v := versionOf(info); v != "" {
		w.Header().Set("ETag", `"`+v+`"`)
	}
}

// keyLocks make changes of one key by this process take turns, so that a change that was
// read, checked and written is one step. Another process may still come between.
type keyLocks struct {
	seed  maphash.Seed
	locks [256]sync.Mutex
}

// lock locks a key and returns the function that unlocks it.
func (l *keyLocks) lock(key string) (unlock func()) {
	m := &l.locks[maphash.String(l.seed, key)%uint64(len(l.locks))]
	m.Lock()
	return m.Unlock
}

// checkVersion returns a Problem unless the If-Match of the request names the task's
// version. The caller has locked the key.
func (a *API) checkVersion(r *http.Request) error {
	want := r.Header.Get("If-Match")
	if want == "" {
		return nil
	}
	info, err := a.client.Get(r.Context(), keyOf(r))
	switch {
	case errors.Is(err, durable.ErrNotFound):
		return errChanged
	case err != nil:
		return err
	case want != "*" && want != `"`+versionOf(&info)+`"`:
		return errChanged
	}
	return nil
}

var errChanged = Problemf(http.StatusPreconditionFailed, "the task has another version than If-Match says")

// conditions converts If-None-Match for Schedule.
func conditions(r *http.Request) ([]durable.ScheduleOption, error) {
	switch none := r.Header.Get("If-None-Match"); none {
	case "":
		return nil, nil
	case "*":
		return []durable.ScheduleOption{durable.OnlyNew()}, nil
	default:
		return nil, Problemf(http.StatusBadRequest, "If-None-Match must be *, got %.40q", none)
	}
}

// Create schedules a new task, and Replace one whose version is known. They are for the page.
func (a *API) Create(ctx context.Context, t *Task) error {
	item, err := a.item(t)
	if err != nil {
		return err
	}
	outcome, err := a.client.Schedule(ctx, item.Task, item.When, durable.OnlyNew())
	if outcome, err = again(ctx, outcome, err); err == nil && outcome == durable.Kept {
		err = Problemf(http.StatusConflict, "the key %.80q has a task already", t.Key)
	}
	return err
}

// Replace schedules a task in place of the one with a version. Dots in place of a header's
// value keep the value.
func (a *API) Replace(ctx context.Context, key string, t *Task, version string) (durable.Outcome, error) {
	defer a.locks.lock(key)()
	if t.Key != "" && t.Key != key {
		return 0, Problemf(http.StatusUnprocessableEntity, "a task's key cannot be changed")
	}
	info, err := a.client.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	if versionOf(&info) != version {
		return 0, Problemf(http.StatusConflict, "the task has changed since you opened its page; open it again")
	}
	t.Key = key
	before := TaskOf(&info)
	t.unmask(&before)
	item, err := a.item(t)
	if err != nil {
		return 0, err
	}
	outcome, err := a.client.Schedule(ctx, item.Task, item.When)
	return again(ctx, outcome, err)
}
