// Command idle is a TCP server that closes a connection after three seconds of silence. The
// client sends a duration, such as 5s. The server sleeps that long and answers. While it
// sleeps, the connection stays open.
//
//	go run ./idle
//	nc localhost 7070      # type 5s and Enter: an answer after 5 s, then wait 3 s more
package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"github.com/tickless/tickless/idle"
)

func main() {
	l, err := net.Listen("tcp", "localhost:7070")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(serve(l, 3*time.Second, sleepAndAnswer))
}

// sleepAndAnswer sleeps for the duration in line, then answers. It is the server's handler.
func sleepAndAnswer(line string) (answer string) {
	d, err := time.ParseDuration(line)
	if err != nil {
		return err.Error()
	}
	time.Sleep(d)
	return "slept " + line
}

// serve answers each line of each connection with handle, until the listener is closed.
func serve(tcp net.Listener, timeout time.Duration, handle func(line string) string) error {
	var busy sync.Map // connections with a running handler
	l := idle.NewListener(tcp, timeout, idle.WithOnIdle(func(c *idle.Conn, since time.Time) (evict bool) {
		_, working := busy.Load(c)
		return !working
	}))
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			for lines := bufio.NewScanner(c); lines.Scan(); {
				busy.Store(c, nil)
				answer := handle(lines.Text())
				c.SetWriteDeadline(time.Now().Add(timeout)) // for a client that does not read
				_, err := fmt.Fprintln(c, answer)
				busy.Delete(c) // after the write, which counts as activity
				if err != nil {
					return
				}
			}
		}()
	}
}
