package main

import (
	"os"
	"strings"
	"testing"
)

// The page shows what the simulation says.
func TestPage_HasTheTables(t *testing.T) {
	text, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), begin+"\n\n"+tables()+"\n"+end) {
		t.Error("docs/scaling.md differs: go run ./scaling -page ../docs/scaling.md, in benchmarks")
	}
}

// The simulation says what was measured, within what the page says of it.
func TestModel_AgainstMeasurements(t *testing.T) {
	for _, m := range []struct {
		shards int
		rate   float64
		moves  float64
		ns     float64 // for each timer, by BenchmarkPollerExpiry
	}{
		{32, 1e6, 0, 418}, {128, 1e6, 0, 939},
		{32, 1e6, 1, 857}, {128, 1e6, 1, 1585},
		{32, 1e5, 2, 1439},
	} {
		l := load{procs: m.shards / homesPerProc, pollers: 1, fired: m.rate, moves: m.moves}
		got := l.simulate().busy * 1e9 / m.rate
		if got < 0.75*m.ns || got > 1.25*m.ns {
			t.Errorf("%+v: %.0f ns a timer, measured %.0f", m, got, m.ns)
		}
	}
}

func TestLimit_IsWhereThePollerIsBusy(t *testing.T) {
	for _, procs := range []int{1, 4, 16, 64} {
		l := load{procs: procs, pollers: 1, moves: 1}
		l.fired = l.limit()
		if busy := l.simulate().busy; busy < 0.95 || busy > 1.05 {
			t.Errorf("%d procs: at its limit the poller is busy for %.2f of the time", procs, busy)
		}
	}
}
