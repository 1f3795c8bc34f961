package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrEviction is returned by [Store.Check], and within ten seconds by commands that
	// store tasks, if a server may evict tasks when its memory is full. It wraps
	// [store.ErrUnsafe].
	ErrEviction = fmt.Errorf("redisstore: the server evicts keys; set maxmemory-policy to noeviction: %w", store.ErrUnsafe)
	// ErrLost means that a server was emptied, or restarted without its data. The handler
	// of [WithLossHandler] gets this error. A command is sent again, and returns ErrLost
	// only after five failed attempts.
	ErrLost = errors.New("redisstore: the server has lost tasks")
)

// An unsentError means that the command was not sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// A clientClosedError means that the client was closed. It matches [store.ErrClosed], but
// not [store.ErrNotDone]: the server may have carried out the command before.
type clientClosedError struct{ err error }

func (e *clientClosedError) Error() string        { return "redisstore: " + e.err.Error() }
func (e *clientClosedError) Unwrap() error        { return e.err }
func (e *clientClosedError) Is(target error) bool { return target == store.ErrClosed }

// toStoreError turns an error into one of package store. go-redis may send a command twice. A
// script's error is reliable even then, because the script checks whether the command was
// already carried out.
func toStoreError(err error) error {
	if err == nil {
		return nil
	}
	var unsent *unsentError
	if errors.As(err, &unsent) {
		if err = toStoreError(unsent.err); !errors.Is(err, store.ErrNotDone) {
			err = fmt.Errorf("%w: %w", err, store.ErrNotDone)
		}
		return err
	}
	text := err.Error()
	switch {
	case errors.Is(err, redis.ErrClosed):
		return &clientClosedError{err}
	case text == "TICKLESS late":
		return store.ErrLate
	case text == "TICKLESS stale":
		return store.ErrStale
	case text == "TICKLESS lost" || strings.HasPrefix(text, "TICKLESS is "):
		return fmt.Errorf("%w: the shard was missing or newly created at every attempt", ErrLost)
	case isOutOfMemory(text):
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if _, has, ok := strings.Cut(text, "TICKLESS schema "); ok {
		has, _, _ = strings.Cut(has, "@")
		return fmt.Errorf("%w: the stored version/number of shards is %s: %w", store.ErrSchema, has, store.ErrNotDone)
	}
	// The outcome is unknown even after NOPERM, NOAUTH or WRONGPASS: go-redis may have
	// sent the command before, on a connection that failed.
	return fmt.Errorf("redisstore: %w", err)
}

// isOutOfMemory reports whether a full server refused the first write of a script. The
// script then had no effect. Redis 6.2 reports this as a failure of the script.
func isOutOfMemory(text string) bool {
	return strings.HasPrefix(text, "OOM ") ||
		strings.HasPrefix(text, "ERR Error running script ") && strings.Contains(text, ": -OOM command not allowed ")
}

// answerError returns the error for an answer that no script gives.
func answerError(v any) error {
	return fmt.Errorf("redisstore: unexpected answer of a script: %s", store.Shorten(fmt.Sprint(v)))
}
