package alarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each ring counts once, by whatever it came.
func TestCounts(t *testing.T) {
	rang := make(chan struct{})
	before := Counts()
	const rings = 50
	a := New(func() { rang <- struct{}{} })
	for range rings {
		a.Reset(time.Millisecond)
		<-rang
	}
	<-a.Close()
	after := Counts()
	all := func(r Rings) uint64 { return r.ByDescriptor + r.ByTimer + r.ByBackup }
	require.GreaterOrEqual(t, all(after)-all(before), uint64(rings))
}
