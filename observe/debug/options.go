package debug

import (
	"slices"
	"strings"

	"github.com/tickless/tickless/timer"
)

// An Option changes how [Handler] makes a handler.
type Option interface{ apply(*config) }

type config struct {
	hosts   map[string]bool
	anyHost bool
	given   []*timer.Scheduler // nil: those that have names
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithHosts lets the page be asked for under other names than those of the loopback: a
// name or an address as it stands in a URL, without the port. "*" is every name, for
// handlers that something else protects. The default is the loopback alone.
func WithHosts(hosts ...string) Option {
	return option(func(c *config) {
		if c.hosts == nil {
			c.hosts = make(map[string]bool)
		}
		for _, h := range hosts {
			c.anyHost = c.anyHost || h == "*"
			c.hosts[strings.ToLower(strings.TrimSuffix(strings.Trim(h, "[]"), "."))] = true
		}
	})
}

// WithSchedulers has the page show these Schedulers, whether they have names or not.
// The default is what [timer.Schedulers] returns. The handler keeps them alive.
func WithSchedulers(s ...*timer.Scheduler) Option {
	if slices.Contains(s, nil) {
		panic("debug: WithSchedulers: a Scheduler must not be nil")
	}
	return option(func(c *config) {
		if c.given == nil {
			c.given = []*timer.Scheduler{}
		}
		c.given = append(c.given, s...)
	})
}

func (c *config) schedulers() []*timer.Scheduler {
	if c.given != nil {
		return c.given
	}
	return slices.Collect(timer.Schedulers())
}
