package simulation

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Test plays seeds 1 to count, or what the environment says, which `make simulation` sets:
//
//	TICKLESS_SEED     one seed
//	TICKLESS_SEEDS    another count, or a range such as 5001-6000
//	TICKLESS_WITHOUT  the Plan's Without, separated by commas
//	TICKLESS_STORM    the Plan's Storm
//	TICKLESS_SHRINK   off: do not cut a failing seed down
//
// A seed that fails is cut down, and ends the test. With -short, which the race detector
// uses, the goroutines of a seed run at the same time, so that its trace may vary.
func Test(t *testing.T, o Opener, count uint64) {
	if testing.Short() {
		count = min(count, 5)
	}
	first, last, plan, err := readEnvironment(count)
	if err != nil {
		t.Fatal(err)
	}
	for seed := first; seed <= last; seed++ {
		if plan.Seed = seed; seed%100 == 0 {
			t.Logf("seed %d", seed)
		}
		r := Run(t, plan, o)
		if r.Failure == "" {
			continue
		}
		if os.Getenv("TICKLESS_SHRINK") == "off" {
			t.Fatalf("seed %d: %s", seed, r.Failure)
		}
		t.Logf("seed %d fails and is cut down: %s", seed, r.Failure)
		smallest, r := Shrink(t, plan, o, r)
		for _, line := range r.Trace[max(0, len(r.Trace)-40):] {
			t.Log(line)
		}
		t.Fatalf("%s\nseed %d; to play it again: %s", r.Failure, seed, smallest.Command())
	}
	t.Logf("seeds %d to %d pass", first, last)
}

func readEnvironment(count uint64) (first, last uint64, p Plan, err error) {
	p.Without = strings.FieldsFunc(os.Getenv("TICKLESS_WITHOUT"), func(c rune) bool { return c == ',' })
	p.Storm, err = time.ParseDuration(cmp.Or(os.Getenv("TICKLESS_STORM"), "0s"))
	seeds := cmp.Or(os.Getenv("TICKLESS_SEEDS"), fmt.Sprint(count))
	if one := os.Getenv("TICKLESS_SEED"); one != "" {
		seeds = one + "-" + one
	}
	switch n, _ := fmt.Sscanf(seeds, "%d-%d", &first, &last); {
	case n == 0:
		err = fmt.Errorf("simulation: %q is no number of seeds and no range", seeds)
	case n == 1:
		first, last = 1, first
	}
	for _, name := range p.Without {
		if !slices.Contains(names(), name) {
			err = fmt.Errorf("simulation: unknown actor or fault %q, not one of %q", name, names())
		}
	}
	return first, last, p, err
}

// Shrink leaves out of a plan whatever the failure does not need: faults, actors, and the
// second half of the storm. r is the plan's result. It returns the smallest plan that still
// fails in the same way, and its result.
func Shrink(t *testing.T, p Plan, o Opener, r Result) (Plan, Result) {
	fails := func(x Plan) bool {
		t.Log(x.Command())
		again := Run(t, x, o)
		if again.Kind == r.Kind {
			p, r = x, again
		}
		return again.Kind == r.Kind
	}
	for smaller := true; smaller; {
		smaller = false
		for _, name := range names() {
			if x := p; p.has(name) {
				x.Without = append(slices.Clone(p.Without), name)
				smaller = fails(x) || smaller
			}
		}
		for x := p; ; {
			if x.Storm = r.Storm / 2; x.Storm < 200*time.Millisecond || !fails(x) {
				break
			}
			smaller = true
		}
	}
	return p, r
}
