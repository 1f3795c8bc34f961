package vars_test

import (
	"encoding/json"
	"expvar"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/observetest"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/vars"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// TestNew_HasWhatIsDocumented compares the keys with observe/metrics.csv.
func TestNew_HasWhatIsDocumented(t *testing.T) {
	var all map[string]map[string]map[string]any
	if err := json.Unmarshal([]byte(vars.New(observetest.Sources(t)...).String()), &all); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]any)
	for thing, objects := range all {
		if len(objects) != 1 {
			t.Errorf("there are %d of %s, want 1", len(objects), thing)
		}
		for _, numbers := range objects {
			for name, value := range numbers {
				found["tickless."+thing+"."+name] = value
			}
		}
	}
	for _, r := range observetest.Core(observetest.Documented(t, "../..")) {
		value, ok := found[r.OTel]
		if !ok {
			t.Errorf("%s is missing", r.OTel)
		}
		delete(found, r.OTel)
		_, object := value.(map[string]any)
		if want := r.Kind == "histogram" || strings.Contains(r.Labels, ","); object != want {
			t.Errorf("%s is %v", r.OTel, value)
		}
	}
	for name := range found {
		t.Errorf("%s is not documented", name)
	}
}

func TestNew_DefaultIsNamedSchedulers(t *testing.T) {
	s := timer.New(timer.WithName("expvar test"), timer.WithClock(timertest.NewClock(time.Unix(0, 0))))
	v := vars.New()
	if text := v.String(); !strings.Contains(text, `"expvar test"`) {
		t.Errorf("the Scheduler is missing: %s", text)
	}
	s.Close()
	if text := v.String(); strings.Contains(text, `"expvar test"`) {
		t.Error("the Scheduler is there although it is closed")
	}
}

func ExamplePublish() {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := timer.New(timer.WithName("jobs"), timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	s.AfterFunc(time.Minute, func() {})
	s.AfterFunc(time.Hour, func() {})

	vars.Publish("tickless", observe.Schedulers())

	var tickless struct {
		Scheduler map[string]struct {
			Pending int `json:"timer.pending"`
		}
	}
	json.Unmarshal([]byte(expvar.Get("tickless").String()), &tickless)
	jobs := tickless.Scheduler["jobs"]
	fmt.Println(jobs.Pending, "pending")
	// Output: 2 pending
}

// If reading a thing panics, its object has an error and no numbers.
func TestNew_AThingThatPanics(t *testing.T) {
	v := vars.New(observe.Purgatory("not made", new(purgatory.Purgatory[string])), observe.Scheduler("not made", new(timer.Scheduler)))
	var all map[string]map[string]map[string]any
	if err := json.Unmarshal([]byte(v.String()), &all); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"purgatory", "scheduler"} {
		got := all[kind]["not made"]
		if text, _ := got["error"].(string); len(got) != 2 || !strings.HasPrefix(text, "observe: panic: ") || got["read_failures"] != 1. {
			t.Errorf("the %s has %v", kind, got)
		}
	}
}
