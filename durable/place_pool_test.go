package durable

import (
	"testing"

	"github.com/tickless/tickless/durable/memstore"
)

// A claim may free nothing when all its tasks have ended already, after the Run: the pool is
// idle only once.
func TestPlacePool_IdleOnce(t *testing.T) {
	mem := memstore.New()
	defer mem.Close()
	p := newPlacePool(NewWorker(New(mem)))
	l := new(shardLoop)
	g := p.reservePlaces(l, 1, false)
	p.endRun()
	p.mu.Lock()
	p.addFreePlacesLocked(1) // the task of the claim ends
	p.mu.Unlock()
	none := make([]int, len(p.handlers))
	p.freeUnusedPlaces(l, g, none, none, g.placeCount, 0, 0, waitReasons{})
	<-p.idle
}
