package main

import (
	"math"
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

// The simulation says what was measured, as closely as the page has it.
func TestModel_AgainstMeasurements(t *testing.T) {
	for _, m := range []struct {
		shards int
		rate   float64
		moves  float64
		ns     float64 // for each timer, by BenchmarkPollerExpiry
		is     float64 // what the simulation makes of it, as a share
	}{
		{1, 1e6, 0, 164, 0.96}, {32, 1e6, 0, 418, 0.98}, {128, 1e6, 0, 939, 0.99},
		{1, 1e6, 1, 518, 0.99}, {32, 1e6, 1, 857, 0.89}, {128, 1e6, 1, 1585, 0.81},
		{1, 1e5, 2, 744, 1.18}, {32, 1e5, 2, 1439, 1.11},
	} {
		l := load{procs: max(m.shards/homesPerProc, 1), shards: m.shards, pollers: 1, fired: m.rate, moves: m.moves}
		got := l.simulate().busy * 1e9 / m.rate
		if share := got / m.ns; math.Abs(share-m.is) > 0.005 {
			t.Errorf("%+v: %.0f ns a timer, %.3f of what was measured", m, got, share)
		}
	}
}

// What the text below the tables makes of them.
func TestPage_TextIsOfTheTables(t *testing.T) {
	alone := func(procs int) float64 { return load{procs: procs, pollers: 1, moves: 1}.limit() }
	helped := func(procs int) load {
		l := load{procs: procs, pollers: 1 + procs/procsPerHelper, moves: 1}
		l.fired = l.limit()
		return l
	}
	text, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	timeouts := load{procs: 64, pollers: 1, moves: 1, fired: 64 * 2e3, stops: 64 * 198e3}
	for _, c := range []struct {
		text             string
		got, least, most float64
	}{
		{"12.8 million", timeouts.fired + timeouts.stops, 12.8e6, 12.8e6},
		{"a fifth of its time", timeouts.simulate().busy, 0.19, 0.21},
		{"about 60,000 a second on each", alone(16) / 16, 57e3, 65e3},
		{"16 µs of work", 1e6 / (alone(16) / 16), 15.5, 16.5},
		{"it is 11,000 on each", alone(64) / 64, 10.5e3, 11.5e3},
		{"90 µs of work", 1e6 / (alone(64) / 64), 85, 95},
		{"16 procs serve seven times as many", helped(16).fired / alone(16), 6.8, 7.3},
		{"64 procs nearly ten times as many", helped(64).fired / alone(64), 9.5, 10},
		{"7.1 million a second", helped(16).fired, 7.05e6, 7.15e6},
		{"7.1 million a second, or 110,000 on each of 64 procs", helped(64).fired / 64, 108e3, 112e3},
		{"it is then held for 62 % of the time", helped(64).simulate().queueBusy, 0.615, 0.625},
	} {
		if !strings.Contains(page, c.text) {
			t.Errorf("the page does not say %q", c.text)
		}
		if c.got < c.least || c.got > c.most {
			t.Errorf("%s: %g", c.text, c.got)
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
