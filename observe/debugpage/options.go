package debugpage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// An Option configures the handler of [Handler].
type Option interface{ apply(*config) }

type config struct {
	allowedHosts map[string]bool
	allowAnyHost bool
	schedulers   []observe.Source // nil: those of timer.Schedulers
	sources      []observe.Source
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithHosts allows hosts in the URL of the page, besides those of the local machine. A
// host is a name or an address, and its port is ignored. "*" allows every host. WithHosts
// panics if a host is empty or a whole URL.
func WithHosts(hosts ...string) Option {
	for _, h := range hosts {
		if normalizeHost(h) == "" || strings.ContainsAny(h, "/@ ") {
			panic(fmt.Sprintf("debugpage: WithHosts: a host must be a name or an address, got %q", h))
		}
	}
	return option(func(c *config) {
		if c.allowedHosts == nil {
			c.allowedHosts = make(map[string]bool)
		}
		for _, h := range hosts {
			c.allowAnyHost = c.allowAnyHost || h == "*"
			c.allowedHosts[normalizeHost(h)] = true
		}
	})
}

// WithSchedulers makes the page show the given Schedulers instead of [timer.Schedulers].
// The handler keeps them in memory.
func WithSchedulers(s ...*timer.Scheduler) Option {
	if slices.Contains(s, nil) {
		panic("debugpage: WithSchedulers: a Scheduler must not be nil")
	}
	return option(func(c *config) {
		if c.schedulers == nil {
			c.schedulers = []observe.Source{}
		}
		for _, s := range s {
			c.schedulers = append(c.schedulers, observe.Scheduler(cmp.Or(s.Name(), "unnamed"), s))
		}
	})
}

// WithSources adds other things to the page, such as a purgatory, or a Worker of package
// durable/metrics. A slow Source delays the page. WithSources panics if a Source is the
// zero Source.
func WithSources(sources ...observe.Source) Option {
	metric.NewSet(sources) // panics for a zero Source
	return option(func(c *config) { c.sources = append(c.sources, sources...) })
}
