package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Server is a process of redis-server. Its methods fail the test on errors. Only one
// goroutine at a time may use it.
type Server struct {
	Addr string // 127.0.0.1 and its port
	Port int
	Dir  string // the folder of its files; Restart keeps them

	tb     testing.TB
	args   []string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has exited
}

// Start starts a server that stops when the test ends. args are arguments of
// redis-server. By default the server does not use the disk.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	serverPath(tb)
	// Another program may take the port first: then try another port.
	for try := 0; ; try++ {
		s := &Server{tb: tb, Port: FindFreePort(tb), Dir: tempDir(tb), args: args}
		s.Addr = "127.0.0.1:" + strconv.Itoa(s.Port)
		tb.Cleanup(s.stop)
		err := s.startProcess()
		if err == nil {
			return s
		}
		if try == 3 {
			tb.Fatalf("redistest: %v\n%s", err, s.ReadLog())
		}
	}
}

// serverPath returns the path of the program redis-server.
func serverPath(tb testing.TB) string {
	tb.Helper()
	program := "redis-server"
	if env := os.Getenv("REDIS_SERVER"); env != "" {
		program = env
	}
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	const hint = "this test needs the program redis-server (6.2 or later): scripts/need-redis in the " +
		"repository's root says how to install it; or set REDIS_SERVER to its path"
	if testing.Short() {
		tb.Skip(hint)
	}
	tb.Fatalf("redistest: %s (%v)", hint, err)
	return ""
}

// tempDir returns a folder that is removed after the servers have stopped. With
// t.TempDir, a killed server's last write could fail the test.
func tempDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// FindFreePort returns a port that is free now. It is at most 55535, because the bus of a
// cluster uses the port plus 10000.
func FindFreePort(tb testing.TB) int {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port += -10000; port < 1024 {
			continue
		}
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			l.Close()
			return port
		}
	}
	tb.Fatal("redistest: no free port")
	return 0
}

func (s *Server) startProcess() error {
	args := append([]string{
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Dir,
		"--save", "", "--daemonize", "no", "--loglevel", "notice", "--logfile", s.logPath(),
	}, s.args...)
	s.cmd = exec.Command(serverPath(s.tb), args...)
	useOwnGroup(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(exited)
	}(s.cmd)
	return s.waitReady()
}

// waitReady waits until this server answers and has read its files. It fails if another
// server answers.
func (s *Server) waitReady() error {
	c := s.Client(func(o *redis.Options) { o.MaxRetries = -1 }) // which would pause longer each time
	defer c.Close()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		info, err := c.InfoMap(ctx, "server").Result()
		cancel()
		if err == nil {
			if pid := info["Server"]["process_id"]; pid != strconv.Itoa(s.cmd.Process.Pid) {
				return fmt.Errorf("another server has port %d, with pid %s", s.Port, pid)
			}
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("redis-server exited at once")
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
}

// Client returns a client of the server, which the caller closes. opts change its
// options.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr}
	for _, f := range opts {
		f(o)
	}
	return redis.NewClient(o)
}

// IsRunning reports whether the process is running.
func (s *Server) IsRunning() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Kill kills the server with kill -9, and waits until the process has ended.
func (s *Server) Kill() {
	s.tb.Helper()
	s.Resume()
	if err := s.cmd.Process.Kill(); err != nil {
		s.tb.Fatalf("redistest: kill: %v", err)
	}
	<-s.exited
}

// Restart starts the server again after Kill, with the same address and files.
func (s *Server) Restart() {
	s.tb.Helper()
	if s.IsRunning() {
		s.tb.Fatal("redistest: Restart: the server is running")
	}
	if err := s.startProcess(); err != nil {
		s.tb.Fatalf("redistest: restart: %v\n%s", err, s.ReadLog())
	}
}

// ReadLog returns the server's log.
func (s *Server) ReadLog() string {
	b, _ := os.ReadFile(s.logPath())
	return string(b)
}

func (s *Server) logPath() string { return filepath.Join(s.Dir, "log") }

func (s *Server) stop() {
	if s.cmd == nil || s.cmd.Process == nil || s.exited == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
}
