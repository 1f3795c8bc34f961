package observe_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/observe/vars"
	"github.com/tickless/tickless/timer"
)

// outside starts a goroutine outside any bubble. do runs f on this goroutine and returns
// the result. end ends the goroutine.
func outside() (do func(f func() string) string, end func()) {
	calls, results := make(chan func() string), make(chan string)
	go func() {
		for f := range calls {
			results <- f()
		}
	}()
	return func(f func() string) string {
		calls <- f
		return <-results
	}, func() { close(calls) }
}

// numbers contains some of the numbers that expvar shows for a Scheduler.
type numbers struct {
	Started int    `json:"timer.started"`
	Fired   int    `json:"timer.fired"`
	Pending int    `json:"timer.pending"`
	Error   string `json:"error"`
}

func parse(t *testing.T, text string) map[string]numbers {
	t.Helper()
	var all struct{ Scheduler map[string]numbers }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all.Scheduler
}

// A Scheduler that was made in a bubble can be read from outside.
func TestSchedulers_InABubble_ReadFromOutside(t *testing.T) {
	do, end := outside()
	defer end()
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithName("in a bubble"))
		defer s.Close()
		for d := time.Second; d < time.Hour; d *= 2 {
			s.AfterFunc(d, func() {})
		}
		time.Sleep(5 * time.Second)
		got := parse(t, do(func() string { return vars.New().String() }))["in a bubble"]
		if got.Started != 12 || got.Fired != 3 || got.Pending != 9 || got.Error != "" {
			t.Errorf("got %+v", got)
		}
		for _, query := range []string{"", "?scheduler=in+a+bubble", "?format=json"} {
			page := do(func() string {
				w := httptest.NewRecorder()
				debugpage.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/"+query, nil))
				return w.Body.String()
			})
			if !strings.Contains(page, "in a bubble") || strings.Contains(page, "panic:") {
				t.Errorf("%q has %s", query, page)
			}
		}
		time.Sleep(time.Hour)
		if got := parse(t, do(func() string { return vars.New().String() }))["in a bubble"]; got.Fired != 12 || got.Pending != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// In a bubble, a Scheduler from outside can be read, and so can one from the bubble.
func TestSchedulers_ReadInABubble(t *testing.T) {
	s := timer.New(timer.WithName("outside"))
	defer s.Close()
	s.AfterFunc(time.Hour, func() {})
	synctest.Test(t, func(t *testing.T) {
		own := timer.New(timer.WithName("in a bubble"))
		defer own.Close()
		own.AfterFunc(time.Minute, func() {})
		all := parse(t, vars.New().String())
		if got := all["in a bubble"]; got.Pending != 1 {
			t.Errorf("the Scheduler from the bubble has %+v", got)
		}
		if got := all["outside"]; got.Pending != 1 || got.Error != "" {
			t.Errorf("the Scheduler from outside has %+v", got)
		}
	})
	if got := parse(t, vars.New().String())["outside"]; got.Pending != 1 || got.Error != "" {
		t.Errorf("after the bubble, the Scheduler has %+v", got)
	}
}
