package artifact_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	oneOwner   = "artifact/fix/v1"
	otherOwner = "artifact/tune/v3"
	lease      = time.Hour
)

func TestAFactoryIsLockedForOneOwnerAtATime(t *testing.T) {
	store, ctx := newWorld(t).store, t.Context()
	lock, held, err := store.LockFactory(ctx, "plant-1", oneOwner, lease, noon)
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, noon.Add(lease), lock.ExpiresAt)

	lock, held, err = store.LockFactory(ctx, "plant-1", otherOwner, lease, noon.Add(lease-time.Nanosecond))
	require.NoError(t, err)
	require.False(t, held)
	require.Equal(t, oneOwner, lock.Owner, "who waits is told for whom")
	require.Equal(t, noon.Add(lease), lock.ExpiresAt)

	lock, held, err = store.LockFactory(ctx, "plant-1", oneOwner, lease, noon.Add(time.Minute))
	require.NoError(t, err)
	require.True(t, held, "its owner makes it last longer")
	require.Equal(t, noon.Add(time.Minute+lease), lock.ExpiresAt)

	_, held, err = store.LockFactory(ctx, "plant-2", otherOwner, lease, noon)
	require.NoError(t, err)
	require.True(t, held, "another factory is another lock")
}

func TestALockWhoseTimeIsOverMayBeTaken(t *testing.T) {
	store, ctx := newWorld(t).store, t.Context()
	_, _, err := store.LockFactory(ctx, "plant-1", oneOwner, lease, noon)
	require.NoError(t, err)
	_, held, err := store.LockFactory(ctx, "plant-1", otherOwner, lease, noon.Add(lease))
	require.NoError(t, err)
	require.True(t, held)
	require.NoError(t, store.UnlockFactory(ctx, "plant-1", oneOwner), "who lost it takes nothing away")
	lock, held, err := store.LockFactory(ctx, "plant-1", oneOwner, lease, noon.Add(lease))
	require.NoError(t, err)
	require.False(t, held)
	require.Equal(t, otherOwner, lock.Owner)
}

func TestAnUnlockedFactoryIsFree(t *testing.T) {
	store, ctx := newWorld(t).store, t.Context()
	_, _, err := store.LockFactory(ctx, "plant-1", oneOwner, lease, noon)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, store.UnlockFactory(ctx, "plant-1", oneOwner), "twice is as good as once")
	}
	_, held, err := store.LockFactory(ctx, "plant-1", otherOwner, lease, noon)
	require.NoError(t, err)
	require.True(t, held)
}

func TestOneOfManyWhoAskAtOnceGetsTheLock(t *testing.T) {
	store := newWorld(t).store
	var won atomic.Int32
	var all sync.WaitGroup
	for _, owner := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			_, held, err := store.LockFactory(t.Context(), "plant-1", owner, lease, noon)
			if err == nil && held {
				won.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
}
