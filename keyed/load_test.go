package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// inBubble runs f with Timers of its own, in a bubble.
func inBubble(t *testing.T, f func(t *testing.T, k *keyed.Timers[string, int])) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		f(t, keyed.New(s, func(string, int) {}))
	})
}

func TestGetOrLoad_OneLoadForAllCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, k *keyed.Timers[string, int]) {
		var loads atomic.Int32
		load := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return int(loads.Add(1)), nil
		}
		got := make(chan string)
		for i := range 100 {
			go func() {
				v, err := k.GetOrLoad(t.Context(), []string{"a", "b"}[i%2], time.Minute, load)
				got <- fmt.Sprint(v, err)
			}()
		}
		count := map[string]int{}
		for range 100 {
			count[<-got]++
		}
		require.Equal(t, map[string]int{"1 <nil>": 50, "2 <nil>": 50}, count)

		v, err := k.GetOrLoad(t.Context(), "a", time.Minute, load)
		require.NoError(t, err)
		require.NotZero(t, v)
		require.EqualValues(t, 2, loads.Load(), "a pending key is not loaded")
		at, ok := k.Deadline("a")
		require.True(t, ok)
		require.Equal(t, time.Minute, time.Until(at), "from the end of load")
		time.Sleep(time.Minute)
		v, err = k.GetOrLoad(t.Context(), "a", time.Minute, load)
		require.NoError(t, err)
		require.Equal(t, 3, v, "after the deadline it is loaded again")
	})
}

func TestGetOrLoad_ErrorsAndPanicsAreNotStored(t *testing.T) {
	inBubble(t, func(t *testing.T, k *keyed.Timers[string, int]) {
		failed := errors.New("failed")
		for name, load := range map[string]func(context.Context) (int, error){
			"error": func(context.Context) (int, error) { time.Sleep(time.Second); return 1, failed },
			"panic": func(context.Context) (int, error) { time.Sleep(time.Second); panic(failed) },
		} {
			got := make(chan any)
			for range 3 {
				go func() {
					defer func() {
						if p := recover(); p != nil {
							got <- p
						}
					}()
					_, err := k.GetOrLoad(t.Context(), "key", time.Minute, load)
					got <- err
				}()
			}
			for range 3 {
				require.Equal(t, failed, <-got, name)
			}
			_, ok := k.Get("key")
			require.False(t, ok, name)
		}
		v, err := k.GetOrLoad(t.Context(), "key", time.Minute, func(context.Context) (int, error) { return 7, nil })
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// A refused call holds no lock afterwards: the key can be set.
func TestGetOrLoad_NilArguments(t *testing.T) {
	inBubble(t, func(t *testing.T, k *keyed.Timers[string, int]) {
		const msg = "keyed: GetOrLoad with a nil Context or func"
		load := func(context.Context) (int, error) { return 1, nil }
		require.PanicsWithValue(t, msg, func() { k.GetOrLoad(t.Context(), "key", time.Minute, nil) })
		require.PanicsWithValue(t, msg, func() { k.GetOrLoad(nil, "key", time.Minute, load) }) //lint:ignore SA1012 it is refused
		require.NoError(t, k.Set("key", 1, time.Minute))
	})
}

type userKey struct{}

// A caller that leaves does not end the load of the others. When the last one leaves, the
// load's context ends.
func TestGetOrLoad_CallersLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, k *keyed.Timers[string, int]) {
		ended := make(chan error, 1)
		load := func(ctx context.Context) (int, error) {
			if ctx.Value(userKey{}) != "first" {
				t.Error("not the first caller's values")
			}
			select {
			case <-ctx.Done():
				ended <- ctx.Err()
				time.Sleep(time.Second)
				return 1, nil // late, and not stored
			case <-time.After(time.Minute):
				return 2, nil
			}
		}
		first, leave := context.WithCancel(context.WithValue(t.Context(), userKey{}, "first"))
		firstErr := make(chan error)
		go func() { _, err := k.GetOrLoad(first, "key", time.Hour, load); firstErr <- err }()
		synctest.Wait()
		second := make(chan int)
		go func() { v, _ := k.GetOrLoad(t.Context(), "key", time.Hour, load); second <- v }()
		synctest.Wait()
		leave()
		require.ErrorIs(t, <-firstErr, context.Canceled)
		require.Equal(t, 2, <-second)
		require.Empty(t, ended)

		k.Remove("key")
		only, cancel := context.WithTimeout(context.WithValue(t.Context(), userKey{}, "first"), time.Second)
		defer cancel()
		_, err := k.GetOrLoad(only, "key", time.Hour, load)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, <-ended, context.Canceled)
		// While the abandoned load still runs, a new caller begins a new one.
		v, err := k.GetOrLoad(t.Context(), "key", time.Hour, func(context.Context) (int, error) { return 3, nil })
		require.NoError(t, err)
		require.Equal(t, 3, v)
		time.Sleep(time.Minute)
		v, _ = k.Get("key")
		require.Equal(t, 3, v)
	})
}

// A load that began before the key changed may be outdated.
func TestGetOrLoad_TheKeyChangesMeanwhile(t *testing.T) {
	for name, change := range map[string]func(*keyed.Timers[string, int]) (want int){
		"Set":         func(k *keyed.Timers[string, int]) int { k.Set("key", 2, time.Minute); return 2 },
		"Swap":        func(k *keyed.Timers[string, int]) int { k.Swap("key", 3, time.Minute); return 3 },
		"SetIfAbsent": func(k *keyed.Timers[string, int]) int { k.SetIfAbsent("key", 4, time.Minute); return 4 },
		"Remove":      func(k *keyed.Timers[string, int]) int { k.Remove("key"); return 0 },
		"Set and Remove": func(k *keyed.Timers[string, int]) int {
			k.Set("key", 2, time.Minute)
			k.Remove("key")
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *keyed.Timers[string, int]) {
				got := make(chan int)
				go func() {
					v, err := k.GetOrLoad(t.Context(), "key", time.Hour, func(context.Context) (int, error) {
						time.Sleep(time.Second)
						return 1, nil
					})
					if err != nil {
						t.Error(err)
					}
					got <- v
				}()
				synctest.Wait()
				want := change(k)
				require.Equal(t, 1, <-got)
				v, ok := k.Get("key")
				require.Equal(t, want != 0, ok)
				require.Equal(t, want, v)
			})
		})
	}
}

func TestGetOrLoad_WhatCannotBeStoredIsReturned(t *testing.T) {
	s, _ := virtual(t, timer.WithMaxPending(1))
	k := keyed.New(s, func(string, int) {})
	load := func(context.Context) (int, error) { return 1, nil }
	_, err := k.GetOrLoad(t.Context(), "a", time.Minute, load)
	require.NoError(t, err)
	v, err := k.GetOrLoad(t.Context(), "b", time.Minute, load)
	require.ErrorIs(t, err, timer.ErrTooManyPending)
	require.Equal(t, 1, v)
	s.Close()
	v, err = k.GetOrLoad(t.Context(), "c", time.Minute, load)
	require.ErrorIs(t, err, timer.ErrClosed)
	require.Equal(t, 1, v)
}
