package imports

import "time" // timers

import /* to print */ "fmt"

func only() {
	fmt.Println()
	time.AfterFunc(1, nil) // want `can be`
}
