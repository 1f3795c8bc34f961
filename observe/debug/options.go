package debug

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
	hosts      map[string]bool
	anyHost    bool
	schedulers []observe.Source // nil: those of timer.Schedulers
	sources    []observe.Source
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithHosts allows more hosts in the URL of the page. By default, only hosts of the local
// machine are allowed, such as localhost. A host is a name or an address. Ports are
// ignored. "*" allows every host, for a handler that is protected in another way.
// WithHosts panics if a host is empty or a whole URL.
func WithHosts(hosts ...string) Option {
	for _, h := range hosts {
		if hostOf(h) == "" || strings.ContainsAny(h, "/@ ") {
			panic(fmt.Sprintf("debug: WithHosts: a host must be a name or an address, got %q", h))
		}
	}
	return option(func(c *config) {
		if c.hosts == nil {
			c.hosts = make(map[string]bool)
		}
		for _, h := range hosts {
			c.anyHost = c.anyHost || h == "*"
			c.hosts[hostOf(h)] = true
		}
	})
}

// WithSchedulers makes the page show the given Schedulers, with or without names. The
// handler keeps them in memory. The default is all Schedulers of [timer.Schedulers].
func WithSchedulers(s ...*timer.Scheduler) Option {
	if slices.Contains(s, nil) {
		panic("debug: WithSchedulers: a Scheduler must not be nil")
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

// WithSources adds other things to the page, below the list of Schedulers: keyed Timers,
// a purgatory, a Client or Worker of package durable/metrics, or any other Source. The
// page waits until all Sources have been read. WithSources panics if a Source is the zero
// Source.
func WithSources(sources ...observe.Source) Option {
	metric.NewSet(sources) // panics for a zero Source
	return option(func(c *config) { c.sources = append(c.sources, sources...) })
}
