package pgtest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Server is a process of postgres. Its methods fail the test on errors. Only one
// goroutine at a time may use it.
type Server struct {
	Port int
	Dir  string // the folder of its files

	tb       testing.TB
	settings []string
	bin      string
	cmd      *exec.Cmd
	stdin    io.Closer // the process ends when it is closed
	exited   chan struct{}
}

// Start starts a server that stops when the test ends. Without PostgreSQL's programs it skips
// the test, except in CI (CI=true). Settings are lines of
// postgresql.conf, such as "fsync=off".
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, settings: settings, bin: findPrograms(tb)}
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.Dir = filepath.Join(dir, "data")
	if err := giveToServer(dir); err != nil {
		tb.Fatal(err)
	}
	s.run("initdb", "-D", s.Dir, "-U", "tickless", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	s.Restart()
	tb.Cleanup(s.Kill)
	return s
}

// findPrograms returns the folder of PostgreSQL's programs.
func findPrograms(tb testing.TB) string {
	tb.Helper()
	folders := []string{os.Getenv("POSTGRES_BIN")}
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*", "/opt/homebrew/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.Reverse(found)
		folders = append(folders, found...)
	}
	for _, f := range folders {
		if _, err := os.Stat(filepath.Join(f, "initdb")); f != "" && err == nil {
			return f
		}
	}
	const hint = "this test needs PostgreSQL's programs (14 or later): scripts/need-postgres in the repository's root says how to install them; or set POSTGRES_BIN to their folder"
	if os.Getenv("CI") != "true" {
		tb.Skip(hint)
	}
	tb.Fatal("pgtest: " + hint)
	return ""
}

func (s *Server) run(program string, args ...string) {
	s.tb.Helper()
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = filepath.Dir(s.Dir)
	asServer(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.tb.Fatalf("pgtest: %s: %v\n%s", program, err, out)
	}
}

// Restart starts the server again after Kill, with the same port and files.
func (s *Server) Restart() {
	s.tb.Helper()
	for try := 0; ; try++ {
		if s.Port == 0 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				s.tb.Fatal(err)
			}
			s.Port = l.Addr().(*net.TCPAddr).Port
			_ = l.Close()
		}
		earlierLog, _ := os.ReadFile(s.logPath())
		if s.start() {
			return
		}
		log, _ := os.ReadFile(s.logPath())
		switch log := string(log[len(earlierLog):]); {
		case strings.Contains(log, "is still in use"): // until the other processes of a killed server have ended
			time.Sleep(10 * time.Millisecond)
		case strings.Contains(log, "Address already in use") && try < 3: // another program has taken the port
			s.Port = 0
		default:
			s.tb.Fatalf("pgtest: the server does not start:\n%s", log)
		}
	}
}

func (s *Server) logPath() string { return filepath.Join(filepath.Dir(s.Dir), "log") }

// start returns when the server answers, or false if its process has ended.
func (s *Server) start() bool {
	s.tb.Helper()
	args := []string{filepath.Join(s.bin, "postgres"), "-D", s.Dir, "-p", strconv.Itoa(s.Port)}
	for _, x := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories="}, s.settings...) {
		args = append(args, "-c", x)
	}
	// The shell waits for the end of its input, which comes even if this process is killed.
	const script = `exec 3<&0; "$@" 3<&- </dev/null >>"$0" 2>&1 & pid=$!; (cat <&3 >/dev/null; kill -QUIT $pid) 2>/dev/null & exec 3<&-; wait $pid`
	s.cmd = exec.Command("sh", append([]string{"-c", script, s.logPath()}, args...)...)
	s.cmd.Dir = filepath.Dir(s.Dir)
	asServer(s.cmd)
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		s.tb.Fatal(err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(exited) }(s.cmd)
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		select {
		case <-s.exited:
			return false
		default:
		}
		status, _ := os.ReadFile(filepath.Join(s.Dir, "postmaster.pid"))
		if lines := strings.Split(string(status), "\n"); len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready" {
			return true
		}
	}
	s.tb.Fatal("pgtest: the server does not answer")
	return false
}

// URL returns the URL of a database, such as "postgres".
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://tickless@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
}

// Pid returns the process id of the server.
func (s *Server) Pid() int {
	s.tb.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, "postmaster.pid"))
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err2 := strconv.Atoi(first)
	if err != nil || err2 != nil {
		s.tb.Fatal("pgtest: the server does not run: ", err, err2)
	}
	return pid
}

// Kill ends the server at once, as a crash does: it recovers when it starts again. It does
// nothing if the server does not run.
func (s *Server) Kill() {
	_ = s.stdin.Close()
	<-s.exited
	_ = os.Remove(filepath.Join(s.Dir, "postmaster.pid"))
}
