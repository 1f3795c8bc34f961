package idle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// timer.Schedulers includes the Scheduler of a named Monitor or Conns until it is closed.
func TestWithName(t *testing.T) {
	listed := func() (names []string) {
		for s := range timer.Schedulers() {
			if s.Name() == "peers" || s.Name() == "clients" {
				names = append(names, s.Name())
			}
		}
		return names
	}
	m := idle.New(func(int, time.Time) {}, idle.WithName("peers"))
	cs := idle.NewConns(time.Second, idle.WithName("clients"), idle.WithClock(timertest.NewClock(time.Unix(0, 0))))
	unnamed := idle.New(func(int, time.Time) {})
	defer unnamed.Close()
	require.Equal(t, []string{"peers", "clients"}, listed())
	_, err := m.Watch(1, time.Hour)
	require.NoError(t, err)
	for s := range timer.Schedulers() {
		if s.Name() == "peers" {
			require.Equal(t, 1, s.Len())
		}
	}
	m.Close()
	cs.Close()
	require.Empty(t, listed())
}
