package kafka

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, clitest.Under(NewCommand)) }

func TestPurgatory_CalledWrongly(t *testing.T) {
	clitest.CheckCalledWrongly(t, "purgatory", []clitest.WrongCall{
		{Args: []string{"--bogus"}, Want: "--bogus"},
		{Args: []string{"now"}, Want: `"now"`},
		{Args: []string{"--rate", "0"}, Want: "rate"},
		{Args: []string{"--rate", "-5"}, Want: "rate"},
		{Args: []string{"--rate", "fast"}, Want: "whole number"},
		{Args: []string{"--rate", "11M"}, Want: "10000000"},
		{Args: []string{"--duration", "0s"}, Want: "duration"},
		{Args: []string{"--duration", "25h"}, Want: "duration"},
		{Args: []string{"--duration", "23h"}, Want: "100000000 requests"},
		{Args: []string{"--timeout", "0s"}, Want: "timeout"},
		{Args: []string{"--timeout", "-1s"}, Want: "timeout"},
		{Args: []string{"--p50", "10ms"}, Want: "--p75"},
		{Args: []string{"--p75", "10ms"}, Want: "--p50"},
		{Args: []string{"--p50", "-1ms", "--p75", "10ms"}, Want: "p50"},
		{Args: []string{"--p50", "20ms", "--p75", "10ms"}, Want: "p75"},
		{Args: []string{"--keys", "0"}, Want: "keys"},
		{Args: []string{"--keys", "101", "--key-space", "1k"}, Want: "100"},
		{Args: []string{"--keys", "5", "--key-space", "4"}, Want: "key space"},
		{Args: []string{"--key-space", "0"}, Want: "key space"},
		{Args: []string{"--key-space", "2M"}, Want: "key space"},
		{Args: []string{"--complete", "never"}, Want: "force or check"},
		{Args: []string{"-json", "-rate=x"}, Want: "whole number"},
	})
}

func TestPurgatory_Help(t *testing.T) {
	clitest.CheckHelp(t, "purgatory", "--saturate", "--json", "--p75", "time.AfterFunc")
}

// parsedReport is what the tests read of the JSON.
type parsedReport struct {
	Interrupted bool `json:"interrupted"`
	Cases       []struct {
		Config struct {
			Rate  int     `json:"rate"`
			P50MS float64 `json:"p50_ms"`
		} `json:"config"`
		Runs []struct {
			Name      string   `json:"name"`
			Held      bool     `json:"held"`
			Achieved  float64  `json:"achieved_rate"`
			Arrived   int64    `json:"arrived"`
			Completed int64    `json:"completed"`
			Expired   int64    `json:"expired"`
			Lost      *int64   `json:"lost"`
			Early     *int64   `json:"early"`
			Wrong     *int64   `json:"twice"`
			Waiting   *int64   `json:"waiting"`
			Watched   *int64   `json:"watched"`
			Timers    *int64   `json:"timers"`
			CPUMS     *float64 `json:"cpu_ms"`
			Peak      int64    `json:"heap_peak_bytes"`
			Late      struct {
				Max float64 `json:"max_ms"`
			} `json:"expired_late"`
		} `json:"runs"`
	} `json:"cases"`
}

func parse(t *testing.T, s string) parsedReport {
	t.Helper()
	var r parsedReport
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return r
}

func TestPurgatory_JSONConserves(t *testing.T) {
	for _, complete := range completions {
		t.Run(complete, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := clitest.Run(t, "purgatory", "-json", "-rate", "10k", "-duration=300ms",
				"--timeout", "50ms", "--complete", complete)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			r := parse(t, stdout)
			if r.Interrupted || len(r.Cases) != 2 || r.Cases[0].Config.P50MS != 20 || r.Cases[1].Config.P50MS != 200 {
				t.Fatalf("not Kafka's two cases: %s", stdout)
			}
			for _, c := range r.Cases {
				if len(c.Runs) != 2 || c.Runs[0].Name != "tickless" || c.Runs[1].Name != "AfterFunc+map" {
					t.Fatalf("not both sides: %s", stdout)
				}
				for _, run := range c.Runs {
					if run.Arrived != 3000 || run.Completed+run.Expired != 3000 || run.Completed == 0 || run.Expired == 0 {
						t.Errorf("%s: arrived %d, completed %d, expired %d", run.Name, run.Arrived, run.Completed, run.Expired)
					}
					for what, n := range map[string]*int64{"lost": run.Lost, "early": run.Early, "twice": run.Wrong,
						"waiting": run.Waiting, "watched": run.Watched, "timers": run.Timers} {
						if n == nil || *n != 0 {
							t.Errorf("%s: %s is not zero: %s", run.Name, what, stdout)
						}
					}
					if run.Late.Max <= 0 || run.Achieved <= 0 || run.Peak <= 0 {
						t.Errorf("%s: %+v", run.Name, run)
					}
					if runtime.GOOS == "linux" && (run.CPUMS == nil || *run.CPUMS <= 0) {
						t.Errorf("%s: no CPU time", run.Name)
					}
				}
			}
		})
	}
}

func TestPurgatory_Table(t *testing.T) {
	stdout, stderr, code := clitest.Run(t, "purgatory", "--rate", "10k", "--duration", "200ms", "--p50", "10ms", "--p75", "20ms", "--timeout", "50ms")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"tickless", "AfterFunc+map", "ratio", "target rate", "achieved rate", "completed", "expired", "lost", "early",
		"completion late, p99", "expiry late, max", "CPU time", "heap at its peak", "GC cycles", "10,000 requests/s for 200ms", "10ms (p50)"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table does not show %q", want)
		}
	}
	if strings.Count(stdout, "target rate") != 1 {
		t.Error("more than the one case that was asked for")
	}
	// Standard error is no terminal here, so a line a side and no bar.
	if !strings.Contains(stderr, "AfterFunc+map: 2,000 requests over 200ms\n") || strings.ContainsAny(stderr, "\r\x1b") {
		t.Errorf("standard error is %q", stderr)
	}
	if t.Failed() {
		t.Log(stdout)
	}
}

// From a rate that no machine holds down to one that it does.
func TestPurgatory_Saturate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector: make test runs it")
	}
	stdout, stderr, code := clitest.Run(t, "purgatory", "--saturate", "--json", "--rate", "4M", "--duration", "50ms",
		"--p50", "1s", "--p75", "2s", "--timeout", "1ms")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r := parse(t, stdout)
	if len(r.Cases) != 1 || len(r.Cases[0].Runs) != 2 {
		t.Fatalf("not one case with both sides: %s", stdout)
	}
	for _, want := range []string{"tickless: ", "AfterFunc+map: ", "4,000,000 requests/s", "holds", "falls behind"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("standard error does not tell of %q: %q", want, stderr)
		}
	}
	for _, run := range r.Cases[0].Runs {
		if !run.Held || run.Achieved <= 0 {
			t.Errorf("%s: no rate is held: %s", run.Name, stdout)
		}
	}
}

func TestPurgatory_InterruptPrintsWhatWasDone(t *testing.T) {
	stdout := clitest.InterruptProgram(t, "tickless: 60,000 requests", "purgatory", "--json", "--rate", "100", "--duration", "10m", "--timeout", "300ms")
	r := parse(t, stdout)
	if !r.Interrupted || len(r.Cases) != 1 || len(r.Cases[0].Runs) != 1 {
		t.Fatalf("not the report of an interrupted first run: %s", stdout)
	}
	run := r.Cases[0].Runs[0]
	if run.Arrived == 60_000 || run.Arrived != run.Completed+run.Expired+*run.Waiting || *run.Lost != 0 {
		t.Errorf("arrived %d, completed %d, expired %d, waiting %d, lost %d", run.Arrived, run.Completed, run.Expired, *run.Waiting, *run.Lost)
	}
}

// A run that is cut short tells what was done until then, and what was not.
func TestPurgatoryPlan_CutShort(t *testing.T) {
	for _, newSide := range sides {
		side := newSide()
		ctx, cancel := context.WithCancel(t.Context())
		p := newPlan(config{Rate: 2000, Duration: time.Minute, Timeout: 20 * time.Second,
			P50: 20 * time.Millisecond, P75: 60 * time.Millisecond, Keys: 3, KeySpace: 100, Complete: "force", Seed: 1})
		r, err := p.run(ctx, side, func(settled int64) {
			if settled > 0 {
				cancel()
			}
		})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if !r.Interrupted || r.Completed == 0 || r.Arrived != r.Completed+r.Expired+int64(r.Waiting) || r.Lost != 0 || r.Wrong != 0 {
			t.Errorf("%s: %+v", side.Name(), r)
		}
	}
}

// The load is what it says: Poisson arrivals, log-normal latencies, different
// keys, and the same for the same seed.
func TestPurgatoryPlan(t *testing.T) {
	c := config{Rate: 100_000, Duration: time.Second, Timeout: 200 * time.Millisecond,
		P50: 20 * time.Millisecond, P75: 60 * time.Millisecond, Keys: 3, KeySpace: 100, Complete: "force", Seed: 7}
	p := newPlan(c)
	n := len(p.arrival)
	if n != 100_000 || len(p.keys) != 3*n || !slices.IsSorted(p.arrival) {
		t.Fatalf("%d arrivals, %d keys", n, len(p.keys))
	}
	if d := p.arrival[n-1] - time.Second; d.Abs() > 20*time.Millisecond {
		t.Errorf("the last of a second's arrivals is %v off", d)
	}
	var squares float64
	for i := 1; i < n; i++ {
		gap := float64(p.arrival[i]-p.arrival[i-1]) / float64(10*time.Microsecond)
		squares += gap * gap
	}
	if v := squares / float64(n); math.Abs(v-2) > 0.1 {
		t.Errorf("the square of the gaps is %v on average, of an exponential distribution it is 2", v)
	}
	sorted := slices.Clone(p.latency)
	slices.Sort(sorted)
	for q, want := range map[float64]time.Duration{0.5: c.P50, 0.75: c.P75} {
		if got := sorted[int(q*float64(n))]; math.Abs(float64(got)/float64(want)-1) > 0.05 {
			t.Errorf("quantile %v of the latencies is %v, want %v", q, got, want)
		}
	}
	uses := make([]int, c.KeySpace)
	for i := range n {
		ks := p.keysOf(i)
		if ks[0] == ks[1] || ks[0] == ks[2] || ks[1] == ks[2] {
			t.Fatalf("request %d has a key twice: %v", i, ks)
		}
		for _, k := range ks {
			uses[k]++
		}
	}
	for k, u := range uses {
		if u < 2500 || u > 3500 {
			t.Errorf("key %d is used %d times, want about 3000", k, u)
		}
	}
	if again := newPlan(c); !slices.Equal(again.arrival, p.arrival) || !slices.Equal(again.keys, p.keys) {
		t.Error("the same seed draws another load")
	}
	c.Seed++
	if other := newPlan(c); slices.Equal(other.arrival, p.arrival) {
		t.Error("another seed draws the same load")
	}
}

// A plan may be run again, and a run that is over leaves no trace in the next.
func TestPurgatoryPlan_RunsAgain(t *testing.T) {
	p := newPlan(config{Rate: 5000, Duration: 200 * time.Millisecond, Timeout: 20 * time.Millisecond,
		P50: 10 * time.Millisecond, P75: 30 * time.Millisecond, Keys: 2, KeySpace: 10, Complete: "check", Seed: 1})
	for range 2 {
		for _, newSide := range sides {
			r, err := p.run(context.Background(), newSide(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Arrived != 1000 || r.Completed+r.Expired != 1000 || r.Wrong != 0 || r.Early != 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}

// hastyPurgatory completes each request twice as it arrives.
type hastyPurgatory struct{ ticklessPurgatory }

func (h *hastyPurgatory) Submit(i int) (answerable, error) {
	h.r.completed(i)
	h.r.completed(i)
	return h.ticklessPurgatory.Submit(i)
}

// oftenPurgatory completes the first request a thousand times as it arrives.
type oftenPurgatory struct{ ticklessPurgatory }

func (o *oftenPurgatory) Submit(i int) (answerable, error) {
	if i == 0 {
		for range 1000 {
			o.r.completed(0)
		}
	}
	return o.ticklessPurgatory.Submit(i)
}

// A run does not end before all is over because one request was completed too often.
func TestPurgatoryPlan_OneTooManyIsNotAnother(t *testing.T) {
	p := newPlan(config{Rate: 5000, Duration: 100 * time.Millisecond, Timeout: 50 * time.Millisecond,
		P50: 10 * time.Millisecond, P75: 30 * time.Millisecond, Keys: 2, KeySpace: 10, Complete: "force", Seed: 1})
	r, err := p.run(t.Context(), new(oftenPurgatory), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Arrived != 500 || r.Completed+r.Expired != 500 || r.Waiting != 0 || r.Lost != 0 || r.Wrong < 999 {
		t.Errorf("%+v", r)
	}
}

// A purgatory of our own that does not keep its promises is a failure, and not only a figure.
func TestPurgatory_BrokenPromisesFail(t *testing.T) {
	ours := sides[0]
	defer func() { sides[0] = ours }()
	sides[0] = func() side { return new(hastyPurgatory) }
	cmd := NewCommand()
	cmd.SetArgs([]string{"--json", "--rate", "1k", "--duration", "50ms", "--p50", "5ms", "--p75", "10ms", "--timeout", "100ms"})
	var stdout strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "FAILED: timers of tickless ") || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the error is %v", err)
	}
	if r := parse(t, stdout.String()); len(r.Cases) != 1 || len(r.Cases[0].Runs) != 2 {
		t.Errorf("the figures are not printed: %s", stdout.String())
	}
}
