package simulation_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/internal/simulation"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

var memory = simulation.Opener{
	Open: func(c clock.Clock, shards int) (store.Store, error) {
		return memstore.New(memstore.WithClock(c), memstore.WithShards(shards)), nil
	},
	Close:     func(st store.Store) { _ = st.(*memstore.Store).Close() },
	MaxShards: 4, CompareEvery: 20,
}

func TestSimulation_Seeds(t *testing.T) { simulation.Test(t, memory, 50) }

// The same seed gives the same trace, also in another process. A run in which the runtime has
// preempted a goroutine, as it may on a busy machine, is played again.
func TestSimulation_IsDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which runs with -short, changes the order of goroutines")
	}
	const isOther = "TICKLESS_SIMULATION_PROCESS"
	traceOf := func(seed uint64) string {
		r := simulation.Run(t, simulation.Plan{Seed: seed, Storm: 6 * time.Second}, memory)
		require.Empty(t, r.Failure)
		require.Greater(t, len(r.Trace), 100)
		return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(r.Trace, "\n"))))
	}
	for seed := range uint64(4) {
		seen := make(map[string]bool)
		trace := traceOf(seed)
		for ; !seen[trace]; trace = traceOf(seed) {
			seen[trace] = true
			require.Less(t, len(seen), 5, "seed %d has another trace each time", seed)
		}
		fmt.Printf("trace %d %s\n", seed, trace)
		if os.Getenv(isOther) != "" {
			continue
		}
		other := exec.Command(os.Args[0], "-test.run=^TestSimulation_IsDeterministic$")
		other.Env = append(os.Environ(), isOther+"=1")
		out, err := other.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), fmt.Sprintf("trace %d %s\n", seed, trace))
	}
}

// A forgetful store acknowledges the cancellation of a pending task, but does not carry it
// out.
type forgetful struct{ store.Store }

func (f forgetful) Change(ctx context.Context, shard int, s store.Stamp, c store.Command) ([]store.Outcome, error) {
	if len(c.Items) != 1 {
		return f.Store.Change(ctx, shard, s, c)
	}
	if e, err := f.Store.Get(ctx, shard, c.Items[0].ID); c.Op == store.Cancel && err == nil && e.State == store.Pending {
		return []store.Outcome{store.Removed}, nil
	}
	return f.Store.Change(ctx, shard, s, c)
}

// A failure is found, printed and cut down to what it needs: a client.
func TestShrink(t *testing.T) {
	broken := memory
	broken.Open = func(c clock.Clock, shards int) (store.Store, error) {
		st, err := memory.Open(c, shards)
		return forgetful{st}, err
	}
	broken.Close = func(st store.Store) { memory.Close(st.(forgetful).Store) }
	plan := simulation.Plan{Seed: 1}
	r := simulation.Run(t, plan, broken)
	for r.Kind == "" && plan.Seed < 20 { // not each seed cancels what is pending
		plan.Seed++
		r = simulation.Run(t, plan, broken)
	}
	require.Equal(t, "model", r.Kind, r.Failure)
	smallest, r := simulation.Shrink(t, plan, broken, r)
	require.Equal(t, "model", r.Kind)
	require.Greater(t, len(smallest.Without), 15, "%s", smallest.Command())
	again := simulation.Run(t, smallest, broken)
	require.Equal(t, r.Failure, again.Failure)
	require.Equal(t, r.Trace, again.Trace)
	require.Contains(t, smallest.Command(), fmt.Sprintf("make simulation SEED=%d WITHOUT=worker", plan.Seed))
}

// A judge that expects no task names the one that it finds.
func TestJudge_UnexpectedTask(t *testing.T) {
	found := ""
	j := storetest.NewJudge(func(difference string) { found = difference; panic(found) },
		func(store.Filter) []store.Entry { return []store.Entry{{Task: store.Task{ID: "a"}}} }, func() int { return 0 })
	require.Panics(t, func() { j.Compare(1, store.Stats{}) })
	require.Contains(t, found, "unexpected")
	require.Contains(t, found, "ID:a")
}
