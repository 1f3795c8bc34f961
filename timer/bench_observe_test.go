package timer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tickless/tickless/timer"
)

// BenchmarkObserve measures reading very many timers.
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{4_000, 1_000_000} {
		s := timer.New()
		for i := range n {
			if _, err := s.Start(time.Hour+time.Duration(i)*time.Millisecond, func() {}); err != nil {
				b.Fatal(err)
			}
		}
		for name, look := range map[string]func(){
			"Pending": func() {
				for range s.Pending() {
				}
			},
			"Stats": func() { _ = s.Stats() },
		} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					look()
				}
			})
		}
		s.Close()
	}
}
