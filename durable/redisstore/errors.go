package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrEviction is returned by [Store.Check] if a server may evict tasks when its
	// memory is full. It wraps [store.ErrUnsafe].
	ErrEviction = fmt.Errorf("redisstore: the server evicts keys; set maxmemory-policy to noeviction: %w", store.ErrUnsafe)
	// ErrLost is passed to a handler of [WithLossHandler] if a server has lost tasks: it
	// was emptied, or has restarted without its data. A command returns it only if the
	// server loses its data at each of five attempts to send the command, because it
	// evicts keys all the time.
	ErrLost = errors.New("redisstore: the server has lost tasks")
)

// unsentError is the error of a command that was not sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// closedError is the error of a client that was closed. It matches [store.ErrClosed]
// but not [store.ErrNotDone]: the client may have been closed between a command and its
// answer.
type closedError struct{ err error }

func (e *closedError) Error() string        { return "redisstore: " + e.err.Error() }
func (e *closedError) Unwrap() error        { return e.err }
func (e *closedError) Is(target error) bool { return target == store.ErrClosed }

// explain translates the errors of scripts into those of package store. An error that a
// script returns is certain, because the script first checks whether the command was
// already carried out. Any other reply is about this copy of the command, and there may
// be other copies.
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
		// At every attempt the shard was missing or a different one: see learn.
		return fmt.Errorf("%w: the shard was missing or new at every attempt", ErrLost)
	case outOfMemory(text):
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if _, has, ok := strings.Cut(text, "TICKLESS schema "); ok {
		has, _, _ = strings.Cut(has, "@")
		return fmt.Errorf("%w: its version and number of shards are %s: %w", store.ErrSchema, has, store.ErrNotDone)
	}
	// NOPERM, NOAUTH and WRONGPASS are not certain: go-redis repeats a command after a
	// failed connection, and such a reply may then be about the new connection.
	return fmt.Errorf("redisstore: %w", err)
}

// denied reports whether a server refuses the user or the user's command.
func denied(err error) bool {
	for _, prefix := range []string{"NOPERM ", "NOAUTH ", "WRONGPASS "} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

// outOfMemory reports whether the error says that the server's memory is full. The
// server then refuses the first write of a script, and never a later one. Redis 6.2
// says that the script has failed.
func outOfMemory(text string) bool {
	return strings.HasPrefix(text, "OOM ") ||
		strings.HasPrefix(text, "ERR Error running script ") && strings.Contains(text, ": -OOM command not allowed ")
}

// unexpected returns the error for an answer that no script gives.
func unexpected(v any) error { return fmt.Errorf("redisstore: unexpected answer of a script: %v", v) }
