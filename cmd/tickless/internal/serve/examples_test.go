package serve

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/durable/pgstore"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
)

// repository is the root of the repository.
var repository = filepath.Join("..", "..", "..", "..")

func readPage(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{repository}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The curl lines of the pages work as they stand, apart from the addresses.
func TestServe_CurlLines(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	r := newReceiver(t)
	for name, want := range map[string]int{"README.md": 3, "docs/service.md": 5} {
		n := startNode(t, "--data", t.TempDir())
		script, lines := "set -eu\n", 0
		for _, line := range strings.Split(readPage(t, filepath.FromSlash(name)), "\n") {
			if regexp.MustCompile(`^[a-z]+=`).MatchString(line) {
				script += line + "\n"
			}
			if strings.HasPrefix(line, "curl ") {
				lines++
				script += "curl -sS -f " + strings.TrimPrefix(line, "curl ") + "\n"
			}
		}
		script = strings.NewReplacer("http://127.0.0.1:7420", n.url, "http://127.0.0.1:9000", r.URL).Replace(script)
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil || lines != want {
			t.Errorf("%s: %d curl lines, want %d: %v\n%s\n%s", name, lines, want, err, script, out)
		}
		n.kill()
	}
}

// The image's command line is one that the program accepts, and so is that of the unit. What
// the image builds is what the repository builds: CI has no containers.
func TestServe_DockerfileAndUnit(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("me rw a-secret-of-24-characters-or-more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	docker := readPage(t, "examples", "serve", "Dockerfile")
	words := func(instruction string) (list []string) {
		_, line, _ := strings.Cut(docker, "\n"+instruction+" [")
		line, _, _ = strings.Cut(line, "]")
		for _, word := range strings.Split(line, ", ") {
			list = append(list, strings.Trim(word, `"`))
		}
		return list
	}
	if got := words("ENTRYPOINT"); len(got) != 2 || got[1] != "serve" {
		t.Fatalf("the entry point is %q", got)
	}
	args := strings.NewReplacer("0.0.0.0:7420", "0.0.0.0:0", "/run/secrets/tokens", tokens, "/data", filepath.Join(dir, "data")).Replace(strings.Join(words("CMD"), "\n"))
	startNode(t, strings.Split(args, "\n")...).kill()
	_, run, _ := strings.Cut(docker, "\nRUN ")
	run, _, _ = strings.Cut(run, "\n")
	if !testing.Short() {
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(run, "/out", dir))
		cmd.Dir = repository
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", run, err, out)
		}
		if out, err := exec.Command(filepath.Join(dir, "tickless"), "serve", "--help").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	_, command, _ := strings.Cut(readPage(t, "examples", "serve", "tickless.service"), "\nExecStart=/usr/local/bin/tickless serve ")
	command, _, _ = strings.Cut(command, "\n")
	startNode(t, strings.Fields(strings.ReplaceAll(command, "/var/lib/tickless", filepath.Join(dir, "unit")))...).kill()
}

// Three nodes share a store, and one is killed while it makes calls. The others take them
// when the lease has expired.
func TestServe_ThreeNodes(t *testing.T) {
	if os.Getenv("TICKLESS_CHAOS") != "long" {
		t.Skip("it waits for a lease; make chaos runs it")
	}
	postgres := pgtest.Start(t, "fsync=off").URL("postgres")
	createTables(t, postgres, pgstore.DefaultSchema)
	for name, flags := range map[string][]string{"redis": {"--redis", clitest.StartRedis(t)}, "postgres": {"--postgres", postgres}} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t)
			var nodes []*node
			for range 3 {
				nodes = append(nodes, startNode(t, append(flags, "--unsigned")...))
			}
			const tasks = 600
			due := time.Now().Add(2 * time.Second)
			for i := range tasks {
				at := due.Add(time.Duration(i) * 10 * time.Millisecond)
				nodes[i%3].want(201, "PUT", fmt.Sprint("/v1/tasks/", i), object{"url": r.URL, "at": at.UTC().Format(time.RFC3339Nano)})
			}
			time.Sleep(time.Until(due.Add(2 * time.Second)))
			nodes[0].kill()
			eventually(t, func() bool {
				for i := range tasks {
					if r.count(fmt.Sprint(i)) == 0 {
						return false
					}
				}
				return true
			})
			var worst time.Duration
			for i := range tasks {
				worst = max(worst, r.calls[fmt.Sprint(i)][0].Sub(due.Add(time.Duration(i)*10*time.Millisecond)))
			}
			t.Logf("the latest call was %v late", worst)
			if worst > 31*time.Second || len(r.early) > 0 {
				t.Errorf("the latest call was %v late; early: %v", worst, r.early)
			}
		})
	}
}
