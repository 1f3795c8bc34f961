package metrics

import (
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
)

// Defaults of the options of [Client].
const (
	DefaultMaxAge  = 5 * time.Second
	DefaultTimeout = time.Second
)

// A ClientOption changes how [Client] makes a Source.
type ClientOption interface{ apply(*queue) }

type clientOption func(*queue)

func (f clientOption) apply(q *queue) { f(q) }

// WithMaxAge sets how old the numbers of the store may be before a scrape asks for them
// again. The default is [DefaultMaxAge]; zero is to ask each time. It panics if d is
// negative.
func WithMaxAge(d time.Duration) ClientOption {
	if d < 0 {
		panic(fmt.Sprintf("metrics: WithMaxAge: the duration must not be negative, got %v", d))
	}
	return clientOption(func(q *queue) { q.maxAge = d })
}

// WithTimeout sets how long a scrape waits for the store. If that is over, the queue's
// metrics are missing, and queue.up is 0. The default is [DefaultTimeout]. It panics if
// d is not positive.
func WithTimeout(d time.Duration) ClientOption {
	if d <= 0 {
		panic(fmt.Sprintf("metrics: WithTimeout: the duration must be positive, got %v", d))
	}
	return clientOption(func(q *queue) { q.timeout = d })
}

// Client is one Client: what is in its store, and the commands that it and its Workers
// have sent. It panics if the name is empty, or if c or an option is nil.
//
// Each Client of a store exports the numbers of the same store: to see them, take the
// maximum over the processes and not the sum.
func Client(name string, c *durable.Client, opts ...ClientOption) observe.Source {
	if c == nil {
		panic("metrics: Client: nil Client")
	}
	q := &queue{stats: c.Stats, maxAge: DefaultMaxAge, timeout: DefaultTimeout}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("metrics: Client: option %d is nil", i+1))
		}
		o.apply(q)
	}
	return metric.One(metric.Clients, metric.Object{
		Name: name, ID: c,
		Read:  func() any { return &metric.ClientSample{Queue: q.read(), Commands: commands(c)} },
		Notes: q.notes,
	})
}

// outcomes are those that are exported even if there was none of them.
var outcomes = map[string][]durable.Outcome{
	"schedule":   {durable.Created, durable.Replaced, durable.Kept, durable.Following},
	"reschedule": {durable.Moved, durable.Following, durable.Absent},
	"cancel":     {durable.Removed, durable.Stopping, durable.Absent},
}

// expected are the kinds of commands that are exported even if there was none: of a number
// that appears with the first burst, a rate lacks that burst.
var expected = []string{"schedule", "reschedule", "cancel", "round"}

func commands(c *durable.Client) (all []metric.Command) {
	stats := c.CommandStats()
	for _, name := range expected {
		if !slices.ContainsFunc(stats, func(st durable.CommandStats) bool { return st.Command == name }) {
			stats = append(stats, durable.CommandStats{Command: name})
		}
	}
	for _, st := range stats {
		m := metric.Command{Name: st.Command, Errors: st.Errors, Took: st.Took}
		for _, o := range outcomes[st.Command] {
			m.Outcomes = append(m.Outcomes, metric.Part{Name: o.String(), N: st.Outcomes[o]})
		}
		all = append(all, m)
	}
	return all
}
