package clitest

import (
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"
)

// StartRedis runs a Redis server until the test ends, and returns its URL. Without the
// server's program it skips the test.
func StartRedis(t *testing.T) string {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	server := exec.Command(path, "--port", fmt.Sprint(addr.Port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--maxmemory-policy", "noeviction")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for { // without anything on disk, it serves as soon as it listens
		if c, err := net.Dial("tcp", addr.String()); err == nil {
			_ = c.Close()
			return "redis://" + addr.String()
		}
		time.Sleep(5 * time.Millisecond)
	}
}
