package simulation_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/internal/simulation"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

var memory = simulation.Opener{
	Open: func(c clock.Clock, shards int) (store.Store, error) {
		return memstore.New(memstore.WithClock(c), memstore.WithShards(shards)), nil
	},
	Close:     func(st store.Store) { _ = st.(*memstore.Store).Close() },
	MaxShards: 4, CompareEvery: 20,
}

func TestSimulation_Seeds(t *testing.T) { simulation.Test(t, memory, 50) }

// The same seed gives the same trace, also in another process.
func TestSimulation_IsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const isOther = "TICKLESS_SIMULATION_PROCESS"
	traceOf := func(seed uint64) string {
		r := simulation.Run(t, simulation.Plan{Seed: seed, Storm: 6 * time.Second}, memory)
		require.Empty(t, r.Failure)
		require.Greater(t, len(r.Trace), 100)
		return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(r.Trace, "\n"))))
	}
	runs := 2
	if os.Getenv("TICKLESS_STRESS") != "" {
		runs = 20
	}
	for seed := range uint64(2) {
		first := traceOf(seed)
		fmt.Printf("trace %d %s\n", seed, first)
		if os.Getenv(isOther) != "" {
			continue
		}
		for range runs - 1 {
			require.Equal(t, first, traceOf(seed), "seed %d", seed)
		}
		other := exec.Command(os.Args[0], "-test.run=^TestSimulation_IsDeterministic$")
		other.Env = append(os.Environ(), isOther+"=1")
		out, err := other.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), fmt.Sprintf("trace %d %s\n", seed, first))
	}
}
