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

// An Option changes how [Handler] makes a handler.
type Option interface{ apply(*config) }

type config struct {
	hosts      map[string]bool
	anyHost    bool
	schedulers []observe.Source // nil: those that have names
	others     []observe.Source
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithHosts lets the page be asked for under other hosts than the loopback's: names or
// addresses as they stand in a URL. Ports do not matter. "*" is every name, for handlers that something else protects. The default
// is the loopback alone. WithHosts panics if a host is empty, or a whole URL.
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

// WithSchedulers makes the page show these Schedulers, whether they have names or not.
// The default is what [timer.Schedulers] returns. The handler keeps them alive.
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

// WithSources makes the page show other things too, below the list of Schedulers: keyed
// Timers, a purgatory, a Client or Worker of package durable/metrics, any Source. A page then takes as long as these take to read, and shows the errors of
// the latest dead letters. WithSources panics if a Source is the zero Source.
func WithSources(sources ...observe.Source) Option {
	metric.NewSet(sources) // it panics
	return option(func(c *config) { c.others = append(c.others, sources...) })
}
