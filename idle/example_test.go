package idle_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timertest"
)

// Every request renews a lease of 30 seconds. The clock is virtual, so that the output
// shows the times.
func ExampleMonitor() {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	clk := timertest.NewClock(start)
	m := idle.New(func(session string, since time.Time) {
		fmt.Printf("%s: session %s has expired, its last request was at %s\n",
			clk.Now().Format("15:04:05"), session, since.Format("15:04:05"))
	}, idle.WithClock(clk))
	defer m.Close()

	lease, err := m.Watch("alice", 30*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := func() {
		if lease.Touch() {
			fmt.Printf("%s: a request\n", clk.Now().Format("15:04:05"))
		} else {
			fmt.Printf("%s: a request without a session\n", clk.Now().Format("15:04:05"))
		}
	}
	for range 3 {
		clk.Advance(20 * time.Second)
		request()
	}
	clk.Advance(time.Minute)
	request()
	// Output:
	// 12:00:20: a request
	// 12:00:40: a request
	// 12:01:00: a request
	// 12:01:30: session alice has expired, its last request was at 12:01:00
	// 12:02:00: a request without a session
}

// An event loop reads the clock once for all its events.
func ExampleEntry_TouchAt() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	m := idle.New(func(peer string, since time.Time) {
		fmt.Println(peer, "is silent since", since.Format("15:04:05"))
	}, idle.WithClock(clk))
	defer m.Close()

	peers := map[string]*idle.Entry[string]{}
	for _, peer := range []string{"a", "b", "c"} {
		peers[peer], _ = m.Watch(peer, 15*time.Second)
	}
	for _, batch := range [][]string{{"a", "b", "c"}, {"a", "c"}, {"c"}} {
		clk.Advance(10 * time.Second)
		now := m.Now()
		for _, peer := range batch {
			peers[peer].TouchAt(now)
		}
	}
	fmt.Println(m.Len(), "left")
	// Output:
	// b is silent since 12:00:10
	// 2 left
}

// A client closes its unused connections, as a connection pool does. The callback may
// keep a connection open.
func ExampleConns() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	busy := true
	cs := idle.NewConns(time.Minute, idle.WithClock(clk), idle.WithOnIdle(func(*idle.Conn, time.Time) (evict bool) {
		fmt.Println("idle at", clk.Now().Format("15:04"))
		return !busy
	}))
	defer cs.Close()
	ours, theirs := net.Pipe() // net.Dial in a program
	defer theirs.Close()
	c, err := cs.Wrap(ours)
	if err != nil {
		fmt.Println(err)
		return
	}
	clk.Advance(61 * time.Second) // one second more, for the slack: see WithSlackShare
	busy = false
	clk.Advance(61 * time.Second)
	_, err = c.Write([]byte("too late"))
	fmt.Println(errors.Is(err, idle.ErrIdle), cs.Stats().Evicted)
	// Output:
	// idle at 12:01
	// idle at 12:02
	// true 1
}

// The clients of a server send heartbeats: lines of text. The server pings a silent
// client once, and then disconnects it.
func ExampleListener() {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	pinged := map[*idle.Conn]bool{}
	clk := timertest.NewClock(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	l := idle.NewListener(tcp, 30*time.Second, idle.WithClock(clk),
		idle.WithOnIdle(func(c *idle.Conn, since time.Time) (evict bool) {
			if pinged[c] {
				return true
			}
			pinged[c] = true
			c.SetWriteDeadline(time.Now().Add(time.Second)) // a full buffer must not block the callback
			_, err := io.WriteString(c, "ping\n")
			return err != nil
		}))
	beats := make(chan string)
	served := make(chan error)
	go func() {
		c, err := l.Accept()
		for r := bufio.NewReader(c); err == nil; {
			var line string
			if line, err = r.ReadString('\n'); err == nil {
				beats <- line
			}
		}
		served <- err
	}()

	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	for range 3 {
		io.WriteString(client, "alive\n")
		fmt.Print("server: ", <-beats)
		clk.Advance(20 * time.Second)
	}
	clk.Advance(20 * time.Second) // silence
	line, _ := bufio.NewReader(client).ReadString('\n')
	fmt.Print("client: ", line)
	clk.Advance(time.Minute) // without an answer
	err = <-served
	fmt.Println("server:", errors.Is(err, idle.ErrIdle), l.Stats().Evicted, "evicted")
	l.Close()
	l.Conns().Shutdown(context.Background())
	// Output:
	// server: alive
	// server: alive
	// server: alive
	// client: ping
	// server: true 1 evicted
}
