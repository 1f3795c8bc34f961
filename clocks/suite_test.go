package clocks_test

// This file tests what the clocks of all supported libraries have in common.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/timer"
)

// An upstreamSuite describes test files of another module, and how to change them so
// that they run here.
type upstreamSuite struct {
	Dir    string   // the folder of our package
	Module string   // the module's path; our go.mod must require the module
	Files  []string // paths relative to the module's folder
	// Replace lists pairs of an old and a new text, for strings.NewReplacer.
	Replace []string
	// Skip maps the name of each skipped test to the reason.
	Skip map[string]string
	// ExtraFile is the source text of an extra test file.
	ExtraFile string
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Example)[A-Za-z0-9_]*)\(`)

// run runs the suite's tests as tests of our package. Each test must pass.
func (s upstreamSuite) run(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped with -short: compiles the tests of another module")
	}
	source := strings.TrimSpace(string(command(t, "list", "-m", "-f", "{{.Dir}}", s.Module)))
	here, err := filepath.Abs(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	overlay := make(map[string]string)
	own, err := filepath.Glob(filepath.Join(here, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range own {
		overlay[file] = "" // as if the file did not exist
	}
	temp := t.TempDir()
	add := func(text string) {
		name := fmt.Sprintf("upstream_%d_test.go", len(overlay))
		if err := os.WriteFile(filepath.Join(temp, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(here, name)] = filepath.Join(temp, name)
	}

	tests := make(map[string]bool)
	for _, file := range s.Files {
		text, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			if name := string(m[1]); name != "TestMain" && s.Skip[name] == "" {
				tests[name] = true
			}
		}
		add(strings.NewReplacer(s.Replace...).Replace(string(text)))
	}
	if s.ExtraFile != "" {
		add(s.ExtraFile)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Skip)) {
		t.Logf("skipped: %s: %s", name, s.Skip[name])
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(file, list, 0o644); err != nil {
		t.Fatal(err)
	}

	names := slices.Sorted(maps.Keys(tests))
	args := []string{"test", "-overlay", file, "-count=1", "-v", "-vet=off", "-timeout=2m", "-run=^(" + strings.Join(names, "|") + ")$"}
	if raceEnabled() {
		args = append(args, "-race")
	}
	out := string(command(t, append(args, "./"+s.Dir)...))
	for _, name := range names {
		if !strings.Contains(out, "--- PASS: "+name+" (") {
			t.Errorf("%s did not pass", name)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	t.Logf("%d tests of %s passed", len(names), s.Module)
}

// raceEnabled reports whether this test runs under the race detector.
func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// command runs the go command and returns its output.
func command(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", args[0], err, out, stderr.String())
	}
	return out
}

// onBothClocks runs a test twice, in synctest bubbles: on the system's clock and on a
// virtual clock. The test's function advance moves the time, and runs the callbacks
// that are due.
func onBothClocks[C any](t *testing.T, system func(*timer.Scheduler) C, virtual func() (C, func(time.Duration)), test func(t *testing.T, c C, advance func(time.Duration))) {
	t.Run("system", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			test(t, system(s), func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			})
		})
	})
	t.Run("virtual", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, advance := virtual()
			test(t, c, func(d time.Duration) {
				advance(d)
				synctest.Wait()
			})
		})
	})
}

// An anyClock wraps the clock of any library, so that one test can run on all of them.
type anyClock struct {
	Now       func() time.Time
	NewTimer  func(time.Duration) anyTimer
	AfterFunc func(time.Duration, func()) anyTimer
	NewTicker func(time.Duration) anyTicker
}

// An anyTimer is a timer of an anyClock.
type anyTimer struct {
	C     <-chan time.Time
	Stop  func() bool
	Reset func(time.Duration) bool
}

// An anyTicker is a ticker of an anyClock. Reset is nil if the library's tickers have
// no Reset.
type anyTicker struct {
	C     <-chan time.Time
	Stop  func()
	Reset func(time.Duration)
}

// received reports whether it received a value from c. It does not block.
func received(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// checkTimers checks that an anyClock's timers and tickers behave like package time's
// since Go 1.23.
func checkTimers(t *testing.T, c anyClock, advance func(time.Duration)) {
	t.Helper()
	start := c.Now()
	ran := make(chan struct{}, 10)
	tm, f := c.NewTimer(time.Second), c.AfterFunc(time.Second, func() { ran <- struct{}{} })
	tk := c.NewTicker(time.Second)
	advance(time.Second - time.Millisecond)
	if received(tm.C) || received(tk.C) || len(ran) != 0 {
		t.Error("a timer is early")
	}
	advance(2 * time.Millisecond)
	if !received(tm.C) || !received(tk.C) || len(ran) != 1 {
		t.Error("a timer has not fired")
	}
	if tm.Stop() || tm.Reset(time.Second) || f.Reset(time.Second) {
		t.Error("a timer is active after it has fired")
	}
	if !tm.Reset(2*time.Second) || !tm.Stop() || tm.Stop() || !f.Stop() {
		t.Error("Reset and Stop do not report what was active")
	}
	tm.Reset(time.Second)
	advance(2 * time.Second)
	if !received(tk.C) {
		t.Error("no tick after two more seconds")
	}
	if !tm.Stop() || received(tm.C) {
		t.Error("a value is received after Stop")
	}
	f.Reset(time.Second)
	if tk.Reset != nil {
		tk.Reset(time.Minute)
		advance(59 * time.Second)
		if received(tk.C) {
			t.Error("a tick before the new period was over")
		}
	}
	advance(time.Minute)
	if !received(tk.C) || len(ran) != 2 {
		t.Error("nothing has fired after Reset")
	}
	tk.Stop()
	advance(time.Hour)
	if received(tm.C) || received(tk.C) || len(ran) != 2 {
		t.Error("a timer has fired after Stop")
	}
	if d := c.Now().Sub(start); d < time.Hour || d > 2*time.Hour {
		t.Errorf("%v have passed", d)
	}
}

// checkZeroDelays makes the same calls on our virtual clock and on the library's, with
// delays of zero or less. After each call, the results and the timers that have fired
// must be the same.
func checkZeroDelays(t *testing.T, newLibraryClock, newOurClock func(t *testing.T) (anyClock, func(time.Duration))) {
	t.Helper()
	run := func(clock func(t *testing.T) (anyClock, func(time.Duration))) (log []string) {
		synctest.Test(t, func(t *testing.T) {
			c, advance := clock(t)
			ran := 0
			f := func() { ran++ }
			say := func(what string, tm anyTimer, results ...bool) {
				synctest.Wait()
				received := tm.C != nil && received(tm.C)
				log = append(log, fmt.Sprint(what, ": ran ", ran, ", received ", received, ", results ", results))
				ran = 0
			}
			for _, d := range []time.Duration{0, -1, -time.Hour} {
				a := c.AfterFunc(d, f)
				ch := a.C
				a.C = nil // in some libraries the timer has a channel, which fills up if nobody receives
				drain := func() {
					if ch != nil {
						received(ch)
					}
				}
				say("AfterFunc", a)
				advance(0)
				say("then Advance(0)", a)
				drain()
				say("Reset", a, a.Reset(d))
				advance(time.Second)
				say("then Advance", a)
				drain()
				a.Reset(d)
				say("Stop after Reset", a, a.Stop())
				advance(time.Second)
				say("then Advance", a)
				say("Reset to later", a, a.Reset(time.Minute))
				say("Reset to now", a, a.Reset(d))
				advance(0)
				say("then Advance(0)", a)

				n := c.NewTimer(d)
				say("NewTimer", n)
				advance(0)
				say("then Advance(0)", n)
				n.Reset(time.Minute)
				say("Reset to now", n, n.Reset(d))
				advance(0)
				say("then Advance(0)", n)
				say("Stop", n, n.Stop())
			}
		})
		return log
	}
	want, got := run(newLibraryClock), run(newOurClock)
	if !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("step %d: %s; the library's own: %s", i, got[i], want[i])
			}
		}
	}
}

// A racingClock is a virtual clock whose time may advance while timers start.
type racingClock struct {
	anyClock
	Advance func(time.Duration)
	Pending func() int // the number of pending timers and tickers
	Await   func()     // waits until a timer or ticker is pending
}

// checkStartDuringAdvance starts a timer on one goroutine, while another advances the
// time to its deadline. There are two cases:
//
//   - pending: the advance begins when the timer is pending. The timer must fire.
//   - any: the advance begins at any moment. The timer fires, or has a later deadline.
func checkStartDuringAdvance(t *testing.T, clock func() racingClock) {
	t.Helper()
	const d = time.Second
	const rounds = 1_000
	for _, tt := range []struct {
		name string
		// prepare returns a function that starts a timer and returns its channel.
		// prepare returns nil if the library has no such timer.
		prepare func(anyClock) func() <-chan time.Time
	}{
		{"NewTimer", func(c anyClock) func() <-chan time.Time {
			return func() <-chan time.Time { return c.NewTimer(d).C }
		}},
		{"AfterFunc", func(c anyClock) func() <-chan time.Time {
			return func() <-chan time.Time {
				ran := make(chan time.Time, 1)
				c.AfterFunc(d, func() { ran <- c.Now() })
				return ran
			}
		}},
		{"NewTicker", func(c anyClock) func() <-chan time.Time {
			return func() <-chan time.Time { return c.NewTicker(d).C }
		}},
		{"Timer.Reset", func(c anyClock) func() <-chan time.Time {
			tm := c.NewTimer(time.Hour)
			tm.Stop()
			return func() <-chan time.Time {
				tm.Reset(d)
				return tm.C
			}
		}},
		{"Ticker.Reset", func(c anyClock) func() <-chan time.Time {
			tk := c.NewTicker(time.Hour)
			if tk.Stop(); tk.Reset == nil {
				return nil
			}
			return func() <-chan time.Time {
				tk.Reset(d)
				return tk.C
			}
		}},
	} {
		for _, awaitPending := range []bool{true, false} {
			name := tt.name + "/any"
			if awaitPending {
				name = tt.name + "/pending"
			}
			t.Run(name, func(t *testing.T) {
				for i := range rounds {
					o := clock()
					start := tt.prepare(o.anyClock)
					if start == nil {
						t.Skip("the library has none")
					}
					var ready atomic.Bool
					started := make(chan (<-chan time.Time))
					go func() {
						ready.Store(true)
						started <- start()
					}()
					if awaitPending {
						o.Await()
					} else {
						for !ready.Load() {
							runtime.Gosched()
						}
					}
					o.Advance(d)
					c := <-started
					if !o.firedOrPending(c, awaitPending) {
						t.Fatalf("round %d: Advance has reached the timer's deadline, but the timer has not fired", i)
					}
				}
			})
		}
	}
}

// firedOrPending reports whether the timer of channel c has fired or, if mustFire is
// false, is pending for a later time.
func (o racingClock) firedOrPending(c <-chan time.Time, mustFire bool) bool {
	pending := o.Pending()
	if pending == 0 { // but the callback of AfterFunc may still be running
		select {
		case <-c:
			return true
		case <-time.After(10 * time.Second):
			return false
		}
	}
	if !received(c) && mustFire {
		return false
	}
	o.Advance(0)
	return o.Pending() == pending && !received(c)
}

// checkPanicEnds checks that a panic in f, with the value want, ends the program. A
// child process runs the same test and calls f.
func checkPanicEnds(t *testing.T, want string, f func()) {
	t.Helper()
	const variable = "TICKLESS_PANICS"
	if os.Getenv(variable) == t.Name() {
		f()
		select {} // until the process has ended
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: "+want) {
		t.Errorf("the program ended with %v:\n%s", err, out)
	}
}
