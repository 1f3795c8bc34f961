package diskstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
)

// Whoever waits for the batch of a shard that fails meanwhile takes nothing of it.
func TestSync_AShardFails(t *testing.T) {
	for range 100 { // the store's failure is noticed first, or that of the shard
		require.True(t, diskstore.FailsWhileItsGroupIsAwaited())
	}
}

// A read returns nothing that is not on the disk, not even in the moment in which it has
// just been written.
func TestSync_WhatIsReadIsOnTheDisk(t *testing.T) {
	var disk sync.RWMutex // held while nothing is synced
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if syncsLog(op) {
			disk.RLock()
			defer disk.RUnlock()
		}
		return nil
	}))
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1))
	for i := range 600 {
		id := fmt.Sprint("k", i)
		var released atomic.Bool
		disk.Lock()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for {
					_, err := s.Get(t.Context(), 0, id)
					early := !released.Load()
					if err == nil {
						if early {
							t.Error("a task was read before it was on the disk")
						}
						return
					}
				}
			})
		}
		all.Go(func() {
			if err := schedule(s, i+1, id, 10); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(300 * time.Microsecond)
		released.Store(true)
		disk.Unlock()
		all.Wait()
	}
	require.NoError(t, s.Close())
}

// So it is with a task that was removed just now: that there is none is not said before
// the removal is on the disk.
func TestSync_WhatIsGoneIsGoneOnTheDisk(t *testing.T) {
	var disk sync.RWMutex // held while nothing is synced
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if syncsLog(op) {
			disk.RLock()
			defer disk.RUnlock()
		}
		return nil
	}))
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1))
	require.NoError(t, schedule(s, 1, "k", 10))
	free := sync.OnceFunc(disk.Unlock)
	disk.Lock()
	defer free()
	before, _ := diskstore.Batches(s)
	cancelled, got := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Change(context.Background(), 0, store.Stamp{Sender: "s", Number: 2}, store.Command{Op: store.Cancel, Items: []store.Item{{ID: "k"}}})
		cancelled <- err
	}()
	for written := before; written == before; written, _ = diskstore.Batches(s) {
		time.Sleep(time.Millisecond)
	}
	go func() {
		_, err := s.Get(context.Background(), 0, "k")
		got <- err
	}()
	for unanswered := 0; unanswered < 2; _, unanswered = diskstore.Batches(s) { // the removal, and what Get waits for
		select {
		case err := <-got:
			t.Fatalf("before the removal was on the disk Get returned %v", err)
		default:
			time.Sleep(time.Millisecond)
		}
	}
	free()
	require.NoError(t, <-cancelled)
	require.ErrorIs(t, <-got, store.ErrNotFound)
	require.NoError(t, s.Close())
}

// syncsLog reports whether an operation syncs the log.
func syncsLog(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		return strings.HasSuffix(op.Path, ".log")
	}
	return false
}
