package redistimer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzDecode(f *testing.F) {
	for _, t := range []Task{
		{Handler: "h"},
		{Handler: "h", Body: []byte("body"), Headers: map[string]string{"a": "b", "c": ""}},
		{Handler: "h", MaxAttempts: 7, Timeout: time.Second, Every: time.Hour, Missed: DeadMissed, MissedAfter: time.Minute},
		{Handler: "h", Schedule: "nightly", Missed: LatestMissed},
	} {
		r, err := encode(&t, digits16(1790000000000000))
		require.NoError(f, err)
		f.Add(r)
	}
	// What is damaged gives an error or a task that is written as it was read.
	f.Fuzz(func(t *testing.T, record string) {
		x, generation, err := decode("key", record)
		if err != nil {
			return
		}
		require.Equal(t, record[dueSize:dueSize+generationSize], generation)
		again, err := encode(&x, record[:dueSize])
		if err != nil {
			return // larger than a task may be
		}
		y, _, err := decode("key", again)
		require.NoError(t, err)
		if len(x.Headers) == 0 {
			x.Headers = nil
		}
		require.Equal(t, x.Body, y.Body)
		require.Equal(t, x.Headers, y.Headers)
		require.Equal(t, x.Handler, y.Handler)
	})
}

func TestParseFailures_OfWhatIsDamaged(t *testing.T) {
	require.Len(t, parseFailures("1 1790000000000000 2:ab2 1790000000000001 0:"), 2)
	require.Len(t, parseFailures("1 1790000000000000 2:ab2 1790000000000001 9:"), 1)
	require.Empty(t, parseFailures("nonsense"))
	require.Empty(t, parseFailures("1 2 -5:abc"))
}

func TestDelay_IsWithinItsBounds(t *testing.T) {
	c := handlerConfig{backoff: time.Second, cap: time.Minute}
	for attempt := 1; attempt < 200; attempt++ {
		limit := time.Minute
		if attempt <= 6 {
			limit = time.Second << (attempt - 1)
		}
		var most time.Duration
		for range 200 {
			d := c.delay(attempt)
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, limit)
			most = max(most, d)
		}
		require.Greater(t, most, limit/2, "attempt %d", attempt)
	}
	c = handlerConfig{}
	require.Zero(t, c.delay(5))
}
