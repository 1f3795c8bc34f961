package server_test

import (
	"context"
	"testing"
	"time"

	"example.com/fixture/internal/hook"
	"example.com/fixture/server"
)

func TestConn_Touch(t *testing.T) {
	var timer *time.Timer
	defer server.SetNewIdle(func(d time.Duration, f func()) *time.Timer {
		timer = time.AfterFunc(d, f)
		return timer
	})()
	var c server.Conn
	c.Touch(time.Hour)
	c.Touch(time.Hour)
	if !c.Stop() || timer.Stop() {
		t.Error("the timer was not stopped")
	}
}

func TestLater(t *testing.T) {
	done := make(chan struct{})
	hook.AfterFunc = func(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d/1000, f) }
	p := hook.Later(time.Second, func() { close(done) })
	<-done
	if p.Timer.Stop() {
		t.Error("it is active after it ran")
	}
}

func TestWait(t *testing.T) {
	c := make(chan int, 1)
	c <- 7
	if v, err := server.Wait(context.Background(), c); v != 7 || err != nil {
		t.Error(v, err)
	}
	time.Sleep(time.Millisecond)
}
