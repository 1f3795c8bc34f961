//go:build unix

package callbacks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
)

// mustBeEmpty requires that the program has removed what it made.
func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// A terminal sends its signals to the workers and the server too. They must go on until
// the program has its result, and be gone after it.
func TestCallbacks_SignalToTheWholeProcessGroup(t *testing.T) {
	if _, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")); err != nil {
		t.Skip("there is no redis-server: see scripts/need-redis")
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the tests were started with the signal ignored, as by nohup")
			}
			t.Parallel()
			temporary := t.TempDir()
			cmd := clitest.Program("callbacks", "--json", "--redis", "start", "--workers", "2", "--tasks", "1k", "--duration", "10m")
			cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			stdout := clitest.Interrupt(t, cmd, "callbacks: 1,000 tasks", func(p *os.Process) error { return syscall.Kill(-p.Pid, sig) })
			var r parsedReport
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatalf("%v in\n%s", err, stdout)
			}
			if x := r.Result; !x.Interrupted || x.Left == nil {
				t.Errorf("the server had gone before the workers: %+v", x)
			}
			mustBeEmpty(t, temporary)
		})
	}
}

// A signal to the program's group does not reach the server, which would end under the
// workers.
func TestStartRedis_ProcessGroup(t *testing.T) {
	if _, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")); err != nil {
		t.Skip("there is no redis-server: see scripts/need-redis")
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	url, stop, err := startRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, err := stores.Place{URL: url}.Client()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(client.Info(t.Context(), "server").Val(), "process_id:")
	var pid int
	if _, err := fmt.Sscan(rest, &pid); err != nil {
		t.Errorf("the server does not tell its process: %v", err)
	} else if group, err := syscall.Getpgid(pid); err != nil || group == syscall.Getpgrp() {
		t.Errorf("the server's group is %d, %v, and ours is %d", group, err, syscall.Getpgrp())
	}
	_ = client.Close()
	stop()
	mustBeEmpty(t, temporary)
}

// Nobody reads what it prints: that ends the program.
func TestCallbacks_BrokenPipe(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	cmd := clitest.Program("callbacks", "--tasks", "10", "--duration", "1ms", "--kills", "0")
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	cmd.Stdout = w
	if err := cmd.Run(); err == nil {
		t.Error("it did not notice")
	}
	mustBeEmpty(t, temporary)
}

func TestCallbacks_ServerThatCannotBeStarted(t *testing.T) {
	temporary, program := t.TempDir(), filepath.Join(t.TempDir(), "redis-server")
	if err := os.WriteFile(program, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_SERVER", program)
	t.Setenv("TMPDIR", temporary)
	if _, stderr, code := clitest.Run(t, "callbacks", "--redis", "start"); code != cli.ExitFailed {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	mustBeEmpty(t, temporary)
}
