package diskstore_test

import (
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
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if strings.HasSuffix(op.Path, ".log") {
				disk.RLock()
				defer disk.RUnlock()
			}
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
