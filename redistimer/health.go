package redistimer

import "context"

// Health is what [Client.Check] found.
type Health struct {
	// Nodes are the servers that hold the queue: one, or a cluster's masters.
	Nodes []Node
	// Warnings say what is not as it should be, a sentence each.
	Warnings []string
}

// A Node is a server, as far as it told: what it did not tell is empty.
type Node struct {
	Addr        string
	Version     string
	MaxMemory   int64  // bytes; zero is no limit
	Eviction    string // maxmemory-policy
	AOF         bool
	AppendFsync string
	RDB         bool // it saves snapshots by itself
	Replicas    int
}

// Check connects, sees that the queue was made with these settings, or makes it,
// and looks at how the servers are set up: without persistence, what is
// scheduled is lost when a server restarts, which is a warning; with eviction
// tasks may vanish at any time, which is an error, [ErrEviction]. A Health is
// returned with that error too.
func (c *Client) Check(ctx context.Context) (Health, error) { panic("to come") }
