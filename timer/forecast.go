package timer

import (
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/internal/wheel"
)

// A Window is a stretch of the time to come, and how many timers fall due in it.
type Window struct {
	// From and Until are where it begins and ends, counted from now. The first window
	// of a forecast begins with what is overdue, at the smallest duration there is; the
	// last ends with the largest.
	From, Until time.Duration
	// Timers is the number of timers that are due in it, at From or later and before
	// Until.
	Timers int
}

// forecastSample is how many timers a forecast looks at.
const forecastSample = 2048

// Forecast returns how many of the pending timers fall due in which window: before
// the first of the given durations from now, from there to the second, and so on,
// and after the last. Up to 2,048 pending timers it looks at all of them. If there
// are more it looks at as many, chosen at random, and scales: of a window that holds a
// share p of the timers the standard error is sqrt((1-p)/p/2048) of the number, which
// is 2 percent for half of them and 22 percent for a hundredth. Timers that fell back
// to package time are left out. untils need not be sorted.
//
// O(shards), whatever is pending; no lock is held for longer than it takes to look at
// 512 timers.
func (s *Scheduler) Forecast(untils ...time.Duration) []Window {
	untils = slices.Compact(slices.Sorted(slices.Values(untils)))
	windows := make([]Window, len(untils)+1)
	from := time.Duration(math.MinInt64)
	for i, until := range untils {
		windows[i] = Window{From: from, Until: until}
		from = until
	}
	windows[len(untils)] = Window{From: from, Until: math.MaxInt64}

	now := s.look()
	count := func(x wheel.Sample) {
		in := time.Duration(x.Due - now)
		i, found := slices.BinarySearch(untils, in)
		if found {
			i++
		}
		windows[i].Timers++
	}
	total, chosen := s.sample(forecastSample, func(*shard) func(wheel.Sample) { return count })
	if chosen > 0 && chosen < total {
		scale(windows, total, chosen)
	}
	return windows
}

// scale turns counts of a sample into those of all. They add up to the total.
func scale(windows []Window, total, chosen int) {
	seen, done := 0, 0
	for i := range windows {
		seen += windows[i].Timers
		upTo := int(float64(seen) / float64(chosen) * float64(total))
		if seen == chosen {
			upTo = total
		}
		windows[i].Timers = upTo - done
		done = upTo
	}
}

// A Level describes one level of a Scheduler's wheels, all shards taken together.
type Level struct {
	// Slot is the length of a slot.
	Slot time.Duration
	// Queued says of each slot of the level how many of the shards have it in their
	// queue: it holds timers, or held some that were stopped. The first is the slot that
	// is now, the others follow in time.
	Queued []int
	// Timers is the number of timers on the level, estimated like those of Forecast.
	Timers int
	// Cascaded counts the moves of timers from this level to a lower one.
	Cascaded uint64
}

// Levels describes the levels of the Scheduler's timing wheels, the lowest first, as
// far as there ever was one. O(shards * slots).
func (s *Scheduler) Levels() []Level {
	var levels []Level
	now := s.look()
	for sh := range s.shards.made() {
		sh.mu.Lock()
		for n := 0; ; n++ {
			l, ok := sh.wheel.Level(n, now)
			if !ok {
				break
			}
			if n == len(levels) {
				levels = append(levels, Level{Slot: time.Duration(l.Slot), Queued: make([]int, len(l.Queued))})
			}
			for i, queued := range l.Queued {
				if queued {
					levels[n].Queued[i]++
				}
			}
			levels[n].Cascaded += l.Cascaded
		}
		sh.mu.Unlock()
	}
	windows := make([]Window, len(levels))
	total, chosen := s.sample(forecastSample, func(*shard) func(wheel.Sample) {
		return func(x wheel.Sample) {
			if x.Level < len(windows) { // else it was made since
				windows[x.Level].Timers++
			}
		}
	})
	if chosen > 0 && chosen < total {
		scale(windows, total, chosen)
	}
	for n := range levels {
		levels[n].Timers = windows[n].Timers
	}
	return levels
}
