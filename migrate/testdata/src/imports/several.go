package imports

import "fmt"
import "time"

func several() {
	fmt.Println()
	time.AfterFunc(time.Second, several) // want `can be`
}
