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
	others     []observe.Source
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithHosts serves the page also under other hosts than the loopback's: names or
// addresses as in a URL. Ports do not matter. "*" stands for every host, for a handler
// that is protected in another way. The default is the loopback alone. WithHosts panics
// if a host is empty, or a whole URL.
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
// default is the Schedulers of [timer.Schedulers]. The handler keeps the given ones
// alive.
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
// page then takes as long as reading these takes, and shows the errors of the latest dead
// letters. WithSources panics if a Source is the zero Source.
func WithSources(sources ...observe.Source) Option {
	metric.NewSet(sources) // panics for a zero Source
	return option(func(c *config) { c.others = append(c.others, sources...) })
}
