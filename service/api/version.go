package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable"
)

// versionOf returns a task's version in the form of the API, or nothing for a finished run.
func versionOf(info *durable.Info) string {
	if info.Version == 0 {
		return ""
	}
	return strconv.FormatInt(info.Version, 10)
}

func setETag(w http.ResponseWriter, info *durable.Info) {
	if v := versionOf(info); v != "" {
		w.Header().Set("ETag", `"`+v+`"`)
	}
}

// ifMatch returns the version that the request's If-Match wants the task to have, or 0 for any.
func (a *API) ifMatch(r *http.Request) (int64, error) {
	want := r.Header.Get("If-Match")
	if want == "" {
		return 0, nil
	}
	if want == "*" {
		info, err := a.client.Get(r.Context(), keyOf(r))
		if errors.Is(err, durable.ErrNotFound) {
			return 0, errChanged
		}
		return info.Version, err
	}
	v, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(want, `"`), `"`), 10, 64)
	if err != nil || v <= 0 {
		return 0, errChanged
	}
	return v, nil
}

// ifVersion returns the option for a version, or none for 0.
func ifVersion(v int64) []durable.ChangeOption {
	if v == 0 {
		return nil
	}
	return []durable.ChangeOption{durable.IfVersion(v)}
}

var errChanged = Problemf(http.StatusPreconditionFailed, "the task has another version than If-Match says")

// conditions converts If-Match and If-None-Match for Schedule.
func (a *API) conditions(r *http.Request) (opts []durable.ScheduleOption, err error) {
	switch none := r.Header.Get("If-None-Match"); none {
	case "":
	case "*":
		opts = append(opts, durable.OnlyNew())
	default:
		return nil, Problemf(http.StatusBadRequest, "If-None-Match must be *, got %.40q", none)
	}
	v, err := a.ifMatch(r)
	if v != 0 {
		opts = append(opts, durable.IfVersion(v))
	}
	return opts, err
}

// Create schedules a new task, and Replace one whose version is known. They are for the page.
func (a *API) Create(ctx context.Context, t *Task) error {
	outcome, err := a.store(ctx, t, durable.OnlyNew())
	if err == nil && outcome == durable.Kept {
		err = Problemf(http.StatusConflict, "the key %.80q has a task already", t.Key)
	}
	return err
}

// Replace schedules a task in place of the one with a version. Dots in place of a header's
// value keep the value.
func (a *API) Replace(ctx context.Context, key string, t *Task, version string) (durable.Outcome, error) {
	if t.Key != "" && t.Key != key {
		return 0, Problemf(http.StatusUnprocessableEntity, "a task's key cannot be changed")
	}
	info, err := a.client.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	errOpened := Problemf(http.StatusConflict, "the task has changed since you opened its page; open it again")
	if versionOf(&info) != version {
		return 0, errOpened
	}
	t.Key = key
	before := TaskOf(&info)
	t.unmask(&before)
	outcome, err := a.store(ctx, t, durable.IfVersion(info.Version))
	if err == nil && outcome == durable.Changed {
		return outcome, errOpened
	}
	return outcome, err
}
