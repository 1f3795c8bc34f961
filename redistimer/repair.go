package redistimer

import "context"

// A Repair is what [Client.Repair] has looked at and put right.
type Repair struct {
	Looked   int64 // entries looked at
	Requeued int64 // tasks that were in no place: they are pending now
	Doubled  int64 // tasks that were in two places: they are in one now
	Orphaned int64 // entries without a task: they are gone
}

// Repair looks at every task and sees that it is in exactly one place, pending,
// running or dead, and puts right what is not. Nothing here needs it as long as
// the server keeps what it has acknowledged: it is for what a failover, a disk
// or a person with redis-cli has left. It works in small steps beside the traffic,
// and the context ends it. O(n).
func (c *Client) Repair(ctx context.Context) (Repair, error) { panic("to come") }
