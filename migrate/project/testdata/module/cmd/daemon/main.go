package main

import (
	"fmt"
	"time"

	"example.com/fixture/server"
)

// In a program what is exported is nobody else's.
var Heartbeat = time.NewTicker(time.Millisecond)

func main() {
	<-Heartbeat.C
	Heartbeat.Stop()
	fmt.Println(server.Later(time.Hour, main).Timer.Stop())
}
