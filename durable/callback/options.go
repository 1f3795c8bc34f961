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
	maxPerHost      int
	timeout         time.Duration
	secrets         [][]byte
	allowedPrefixes []netip.Prefix
	judge           func(status int) Verdict
	refused         func(netip.AddrPort) bool
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

func mustBePositive(name string, v time.Duration) {
	if v <= 0 {
		panic(fmt.Sprintf("callback: %s: must be positive, got %v", name, v))
	}
}

// WithPerHost sets the maximum number of concurrent requests to one host: a name or an
// address, with a port. The default is [DefaultPerHost]. The Caller begins with fewer, and
// sends fewer while the host does not answer. WithPerHost panics unless n is from 1 to
// 10,000.
//
// While 4 requests to a host are under way, up to 4 more tasks for the host wait in the
// worker. Others are handed back to the store for 0.1 to 20 seconds. That does not count
// as an attempt. A host's tasks use at most half of the worker's concurrency.
func WithPerHost(n int) Option {
	if n < 1 || n > 10_000 {
		panic(fmt.Sprintf("callback: WithPerHost: must be from 1 to 10000, got %d", n))
	}
	return option(func(c *config) { c.maxPerHost = n })
}

// WithTimeout sets how long a request may take until the response's status arrives, unless
// the task has a [durable.Task.Timeout]. While a task waits for other requests to the host,
// only the worker's timeout counts. The default is [DefaultTimeout]. WithTimeout panics if d is not positive.
func WithTimeout(d time.Duration) Option {
	mustBePositive("WithTimeout", d)
	return option(func(c *config) { c.timeout = d })
}

// WithSecrets signs every request according to Standard Webhooks: see [Verify]. A request
// has one signature for each secret, so that receivers can change from an old secret to a
// new one at any time.
//
// A signature contains the worker's time. If the worker's clock is too wrong, receivers
// refuse its requests, and the tasks become dead letters.
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
	return option(func(c *config) { c.allowedPrefixes = append(c.allowedPrefixes, prefixes...) })
}

// WithRefused also refuses the addresses for which the function returns true, even if
// WithAllowed allows them: for example the program's own. It panics if refused is nil.
func WithRefused(refused func(netip.AddrPort) bool) Option {
	if refused == nil {
		panic("callback: WithRefused: nil function")
	}
	return option(func(c *config) { c.refused = refused })
}

// WithJudge sets the function that judges a response's status, instead of [Judge]. It
// panics if judge is nil.
func WithJudge(judge func(status int) Verdict) Option {
	if judge == nil {
		panic("callback: WithJudge: nil function")
	}
	return option(func(c *config) { c.judge = judge })
}
