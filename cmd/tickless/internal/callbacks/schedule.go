package callbacks

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
)

// schedule schedules the tasks of a chunk. Some of them may be there already: the process
// that scheduled them was killed before it could say so.
func (o *order) schedule(ctx context.Context, c *durable.Client, i int) error {
	from, to := bounds(i, o.Tasks)
	items := make([]durable.Item, 0, to-from)
	for i := from; i < to; i++ {
		t, err := callback.Request{URL: o.URL, Body: []byte(strconv.Itoa(i))}.Task(strconv.Itoa(i))
		if err != nil {
			return err
		}
		items = append(items, durable.Item{Task: t, When: durable.At(o.Base.Add(rand.N(o.Duration)).Truncate(time.Microsecond))})
	}
	_, err := c.ScheduleBatch(ctx, items, durable.OnlyNew())
	return err
}
