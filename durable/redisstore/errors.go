package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrEviction is returned by [Store.Check] if a server may throw away tasks when its
	// memory is full. It wraps [store.ErrUnsafe].
	ErrEviction = fmt.Errorf("redisstore: the server evicts keys; set maxmemory-policy to noeviction: %w", store.ErrUnsafe)
	// ErrLost is what a handler of [WithLossHandler] is told if a server has lost
	// tasks: it was emptied, or started again without its data. A command fails with it
	// only if the server loses what it has each time that the command is sent, of five
	// in a row: it evicts all the time.
	ErrLost = errors.New("redisstore: the server has lost tasks")
)

// unsentError is of a command that was not sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// closedError is of a client that its owner has closed. errors.Is finds [store.ErrClosed] in
// it, but not [store.ErrNotDone]: it may have been closed between a command and its answer.
type closedError struct{ err error }

func (e *closedError) Error() string        { return "redisstore: " + e.err.Error() }
func (e *closedError) Unwrap() error        { return e.err }
func (e *closedError) Is(target error) bool { return target == store.ErrClosed }

// explain makes the errors of scripts those of package store. What a script itself
// answers is certain: it looks first whether the command was carried out before. What
// else a server replies is about this copy of it, of which there may be others.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var unsent *unsentError
	if errors.As(err, &unsent) {
		return fmt.Errorf("redisstore: %w: %w", store.ErrNotDone, unsent.err)
	}
	text := err.Error()
	switch {
	case errors.Is(err, redis.ErrClosed):
		return &closedError{err}
	case text == "TICKLESS late":
		return store.ErrLate
	case text == "TICKLESS stale":
		return store.ErrStale
	case text == "TICKLESS lost" || strings.HasPrefix(text, "TICKLESS is "):
		// As often as it was sent, the shard was gone, or another one: see learn.
		return fmt.Errorf("%w, also while this command was sent again and again", ErrLost)
	case outOfMemory(text):
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if _, has, ok := strings.Cut(text, "TICKLESS schema "); ok {
		has, _, _ = strings.Cut(has, "@")
		return fmt.Errorf("%w: version and shards are %s: %w", store.ErrSchema, has, store.ErrNotDone)
	}
	// NOPERM, NOAUTH and WRONGPASS are not certain: go-redis sends a command again by
	// itself if its connection breaks, and then they are of the new connection.
	return fmt.Errorf("redisstore: %w", err)
}

// denied reports whether a server refuses who asks, or what they ask for.
func denied(err error) bool {
	for _, prefix := range []string{"NOPERM ", "NOAUTH ", "WRONGPASS "} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

// outOfMemory reports whether a server that answers so has no memory left. It refuses the
// first write of a script for that, and none after it. To Redis 6.2 the script has failed.
func outOfMemory(text string) bool {
	return strings.HasPrefix(text, "OOM ") ||
		strings.HasPrefix(text, "ERR Error running script ") && strings.Contains(text, ": -OOM command not allowed ")
}

// unexpected is of an answer that no script gives.
func unexpected(v any) error { return fmt.Errorf("redisstore: unexpected answer of a script: %v", v) }
