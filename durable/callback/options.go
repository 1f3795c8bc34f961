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

func mustBePositive[N int | time.Duration](name string, v N) {
	if v <= 0 {
		panic(fmt.Sprintf("callback: %s: must be positive, got %v", name, v))
	}
}

// WithPerHost sets how many requests the Caller sends to one host at a time. A host is
// a name or an address, with a port. The default is [DefaultPerHost].
//
// The Caller begins with fewer requests at a time. While the host does not answer, it
// reduces the number, down to one.
//
// As many tasks may wait as may run: with 4 requests at a time, 4 further tasks wait in
// the worker. All of them use at most half of the worker's places. Other tasks are
// handed back for 0.1 to 20 seconds, which does not count as an attempt.
//
// WithPerHost panics if n is not positive.
func WithPerHost(n int) Option {
	mustBePositive("WithPerHost", n)
	return option(func(c *config) { c.perHost = n })
}

// WithTimeout sets how long a request may take until the response's status arrives. The
// time before, while the task waits for other requests to the host, does not count.
// (The worker's timeout of an attempt includes it.) The default is [DefaultTimeout].
// WithTimeout panics if d is not positive.
func WithTimeout(d time.Duration) Option {
	mustBePositive("WithTimeout", d)
	return option(func(c *config) { c.timeout = d })
}

// WithSecrets signs every request according to Standard Webhooks: see [Verify] and
// docs/receivers.md. With several secrets, a request has a signature for each:
// receivers can change from an old secret to a new one at any time.
//
// A signature contains the worker's time. If the worker's clock is wrong by more than
// the receiver tolerates, the receiver refuses all requests. Their tasks become dead
// letters.
//
// WithSecrets panics if there are no secrets, or if a secret has fewer than 24 bytes.
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
