package benchmarks

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is a redis-server process that stores nothing on disk.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// startServer starts a server, which runs until kill or the end of the benchmark.
func startServer(b *testing.B) *server {
	b.Helper()
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	if _, err := exec.LookPath(program); err != nil {
		b.Skip("there is no redis-server: see scripts/need-redis")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	s := &server{addr: "127.0.0.1:" + strconv.Itoa(port)}
	s.cmd = exec.Command(program, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", b.TempDir())
	if err := s.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.kill)
	c := s.client()
	defer c.Close()
	for range 2000 {
		if c.Ping(context.Background()).Err() == nil {
			return s
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.Fatal("redis-server does not answer")
	return nil
}

func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: 64})
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
