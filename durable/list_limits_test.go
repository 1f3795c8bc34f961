package durable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A To before 1970 matches nothing, because no task is due then. It must not mean no
// limit.
func TestList_ToOrBefore1970(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(time.Hour))
		for to, want := range map[time.Time]int{{}: 1, time.Unix(0, 0): 0, time.Unix(-1, 0): 0, time.Unix(1, 0): 0, time.Now().Add(2 * time.Hour): 1} {
			n := 0
			for _, err := range c.List(ctx, durable.Filter{To: to}) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, want, n, to)
		}
	})
}
