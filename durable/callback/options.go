package callback

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Defaults of the options.
const (
	DefaultPerHost = 16
	DefaultTimeout = 30 * time.Second
)

// An Option changes how [New] makes a Caller.
type Option interface{ apply(*config) }

type config struct {
	perHost int
	timeout time.Duration
	secrets [][]byte
	allowed []netip.Prefix
	judge   func(status int) Verdict
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

func positive[N int | time.Duration](name string, v N) {
	if v <= 0 {
		panic(fmt.Sprintf("callback: %s: must be positive, got %v", name, v))
	}
}

// WithPerHost sets the maximum number of concurrent requests of this Caller to one
// host, which is a name or an address with a port. The number starts lower, and falls,
// down to one, while the host does not answer. As many more tasks may wait in the
// worker's places; both together take at most half of the places. Further tasks are
// handed back for 0.1 to 20 seconds, depending on how fast the host answers. Handing
// back does not count as an attempt. The default is [DefaultPerHost]. It panics if n is
// not positive.
func WithPerHost(n int) Option {
	positive("WithPerHost", n)
	return option(func(c *config) { c.perHost = n })
}

// WithTimeout sets how long a request may take until the status of its response
// arrives. Waiting for room at the host does not count here, but it does count for the
// timeout of the worker's attempt. The default is [DefaultTimeout]. WithTimeout panics
// if d is not positive.
func WithTimeout(d time.Duration) Option {
	positive("WithTimeout", d)
	return option(func(c *config) { c.timeout = d })
}

// WithSecrets signs every request according to Standard Webhooks, so that receivers can
// verify it with a library: see [Verify] and docs/receivers.md. With several secrets
// there is a signature for each, so that receivers can change from the old secret to
// the new one at any time. It panics if there are no secrets or one is shorter than 24
// bytes.
//
// The signature contains the time of the worker's clock. If the clock is off by more
// than a receiver tolerates, the receiver refuses the requests, and the tasks become
// dead letters.
func WithSecrets(secrets ...[]byte) Option {
	checkSecrets("WithSecrets", secrets)
	return option(func(c *config) { c.secrets = slices.Clone(secrets) })
}

// WithAllowed allows requests to addresses in these ranges even if they are private,
// for example netip.MustParsePrefix("10.0.0.0/8"). It panics if a prefix is not valid.
func WithAllowed(prefixes ...netip.Prefix) Option {
	for _, p := range prefixes {
		if !p.IsValid() {
			panic("callback: WithAllowed: invalid prefix")
		}
	}
	return option(func(c *config) { c.allowed = append(c.allowed, prefixes...) })
}

// WithJudge sets the function that judges a response's status, instead of [Judge]. It
// panics if judge is nil.
func WithJudge(judge func(status int) Verdict) Option {
	if judge == nil {
		panic("callback: WithJudge: nil function")
	}
	return option(func(c *config) { c.judge = judge })
}
