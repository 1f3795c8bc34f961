package callback

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Defaults of the options.
const (
	DefaultPerHost       = 16
	DefaultTimeout       = 30 * time.Second
	DefaultMaxResponse   = 64 << 10
	DefaultMaxRetryAfter = time.Hour
)

// An Option changes how [New] makes a Caller.
type Option interface{ apply(*config) }

type config struct {
	perHost     int
	timeout     time.Duration
	maxResponse int64
	maxRetry    time.Duration
	secrets     [][]byte
	allowed     []netip.Prefix
	judge       func(status int) Verdict
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

func positive[N int | int64 | time.Duration](name string, v N) {
	if v <= 0 {
		panic(fmt.Sprintf("callback: %s: must be positive, is %v", name, v))
	}
}

// WithPerHost sets how many requests to one host, which is a name or an address
// with a port, are under way at a time in this Caller at most. They are fewer
// at first, and while the host does not answer, down to one. As many tasks more may
// wait in their places in the worker, and all together take at most half of these.
// A task beyond that is handed back to the queue for a while, from a tenth of a
// second to 20 s, by how quickly the host answers, and its attempt does not count:
// so it is late, and others are not. The default is [DefaultPerHost]. It panics if
// n is not positive.
func WithPerHost(n int) Option {
	positive("WithPerHost", n)
	return option(func(c *config) { c.perHost = n })
}

// WithTimeout sets how long a request may take until the status of its response arrives,
// without the time that it waits for room at its host. The default is [DefaultTimeout]. The
// timeout of the worker's attempt applies too, and counts that time. WithTimeout panics if d is
// not positive.
func WithTimeout(d time.Duration) Option {
	positive("WithTimeout", d)
	return option(func(c *config) { c.timeout = d })
}

// WithMaxResponse sets how many bytes of a response's body are read; a connection
// on which more come is closed. The default is [DefaultMaxResponse]. It panics if
// n is not positive.
func WithMaxResponse(n int64) Option {
	positive("WithMaxResponse", n)
	return option(func(c *config) { c.maxResponse = n })
}

// WithMaxRetryAfter sets what a receiver's Retry-After counts at most: one that asks
// for more is called after d. A task never comes before that time, and up to a tenth
// of it and 10 ms later, so that those which were put off together do not come back
// at one moment. The default is [DefaultMaxRetryAfter]. It panics if d is not
// positive.
func WithMaxRetryAfter(d time.Duration) Option {
	positive("WithMaxRetryAfter", d)
	return option(func(c *config) { c.maxRetry = d })
}

// WithSecrets has every request signed as Standard Webhooks says, so that receivers can
// check it with a library that they have: see [Verify] and docs/receivers.md. With more
// than one secret there is a signature for each, so that a secret can be changed while
// receivers know the old one or the new. It panics if there is none, or one has less than
// 24 bytes.
//
// The signature has the time of the worker's machine. If that is off by more than a receiver
// tolerates, the receiver refuses what the worker sends, and tasks become dead letters.
func WithSecrets(secrets ...[]byte) Option {
	checkSecrets("WithSecrets", secrets)
	return option(func(c *config) { c.secrets = slices.Clone(secrets) })
}

// WithAllowed lets calls connect to addresses in these ranges although they are
// private: netip.MustParsePrefix("10.0.0.0/8") for example. It panics if a prefix
// is not valid.
func WithAllowed(prefixes ...netip.Prefix) Option {
	for _, p := range prefixes {
		if !p.IsValid() {
			panic("callback: WithAllowed: an invalid prefix")
		}
	}
	return option(func(c *config) { c.allowed = append(c.allowed, prefixes...) })
}

// WithJudge sets what is made of a response's status, instead of [Judge]. It
// panics if judge is nil.
func WithJudge(judge func(status int) Verdict) Option {
	if judge == nil {
		panic("callback: WithJudge with nil")
	}
	return option(func(c *config) { c.judge = judge })
}
