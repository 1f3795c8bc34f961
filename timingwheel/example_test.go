package timingwheel_test

import (
	"fmt"

	"github.com/tickless/tickless/timingwheel"
)

// This is the example of the package comment: tick 1, four slots a level, start at time
// 0.
func Example() {
	w, err := timingwheel.New[string](1, 4, 0)
	if err != nil {
		panic(err)
	}
	id, _ := w.Add(7, "seven")
	w.Add(2, "two")
	w.Add(21, "twenty-one")
	fmt.Println("moved:", w.Move(id, 9))

	// An event loop sleeps until Next, and then calls Advance.
	var due [64]timingwheel.Expired[string]
	for now, ok := w.Next(); ok; now, ok = w.Next() {
		for more := true; more; {
			var n int
			n, more = w.Advance(now, due[:])
			for _, e := range due[:n] {
				fmt.Println(now, e.Value)
			}
		}
	}
	// Output:
	// moved: true
	// 2 two
	// 9 seven
	// 21 twenty-one
}

func ExampleWheel_Add() {
	w, _ := timingwheel.New[string](10, 256, 1000)
	_, ok := w.Add(1000, "now")
	fmt.Println(ok)
	_, ok = w.Add(1001, "within this tick: due at its end")
	fmt.Println(ok)
	fmt.Println(w.Next())
	// Output:
	// false
	// true
	// 1010 true
}
