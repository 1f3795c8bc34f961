package main

import (
	"fmt"
	"time"

	"example.com/fixture/internal/hook"
)

// In a program what is exported is nobody else's.
var Heartbeat = time.NewTicker(time.Millisecond)

func main() {
	<-Heartbeat.C
	Heartbeat.Stop()
	fmt.Println(hook.Later(time.Hour, main).Timer.Stop())
}
