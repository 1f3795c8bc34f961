package observe_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/vars"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// A function that gets nil panics at once. It does not wait until an exporter reads.
func TestSources_RefuseNil(t *testing.T) {
	for want, f := range map[string]func(){
		"observe: Scheduler: the argument must not be nil":                                    func() { observe.Scheduler("a", nil) },
		"observe: Keyed: the argument must not be nil":                                        func() { observe.Keyed("a", (*keyed.Timers[int, int])(nil)) },
		"observe: Purgatory: the argument must not be nil":                                    func() { observe.Purgatory("a", (*purgatory.Purgatory[int])(nil)) },
		"observe: Monitor: the argument must not be nil":                                      func() { observe.Monitor("a", (*idle.Monitor[int])(nil)) },
		"observe: Conns: the argument must not be nil":                                        func() { observe.Conns("a", nil) },
		"observe: source 1 is the zero Source: the functions of package observe make Sources": func() { vars.New(observe.Source{}) },
	} {
		func() {
			defer func() {
				if v := recover(); v != want {
					t.Errorf("got the panic %v, want %q", v, want)
				}
			}()
			f()
		}()
	}
}

// The second Scheduler with the same name gets a number. It keeps this name in an
// exporter even if the first is closed.
func TestSchedulers_OfTheSameName(t *testing.T) {
	names := func(v interface{ String() string }) (names []string) {
		var all struct{ Scheduler map[string]any }
		if err := json.Unmarshal([]byte(v.String()), &all); err != nil {
			t.Fatal(err)
		}
		for name := range all.Scheduler {
			if strings.HasPrefix(name, "same name") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	first := timer.New(timer.WithName("same name"))
	second := timer.New(timer.WithName("same name"))
	defer second.Close()
	early := vars.New()
	if got, want := names(early), []string{"same name", "same name#2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	first.Close()
	if got, want := names(early), []string{"same name#2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: it keeps its name", got, want)
	}
	if got, want := names(vars.New()), []string{"same name"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
