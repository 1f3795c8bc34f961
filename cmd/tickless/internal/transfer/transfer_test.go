package transfer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() *cobra.Command {
		root := &cobra.Command{Use: "tickless"}
		root.AddCommand(NewExport(), NewImport())
		return root
	})
}

func TestTransfer_CalledWrongly(t *testing.T) {
	clitest.CheckWrongCalls(t, "export", []clitest.WrongCall{
		{Args: []string{}, WantError: "one file"},
		{Args: []string{"file"}, WantError: "--file"},
		{Args: []string{"file", "--file", "a", "--redis", "b"}, WantError: "--file"},
		{Args: []string{"file", "--file", "a", "--shards", "4"}, WantError: "for a store on a server"},
		{Args: []string{"file", "--redis", "redis://127.0.0.1:1", "--shards", "3"}, WantError: "power of two"},
		{Args: []string{"file", "--redis", "http://127.0.0.1:1"}, WantError: "--redis: "},
		{Args: []string{"file", "--redis", "redis://127.0.0.1:1", "--name", "a b"}, WantError: "braces, spaces and control characters"},
		{Args: []string{"", "--file", "a"}, WantError: "file is empty"},
	})
	clitest.CheckWrongCalls(t, "import", []clitest.WrongCall{
		{Args: []string{"a", "b"}, WantError: "one file"},
		{Args: []string{"a", "--file", "b", "--rename-handler", "h="}, WantError: "OLD=NEW"},
	})
	clitest.CheckHelp(t, "export", "--file", "--redis", "--shards")
	clitest.CheckHelp(t, "import", "--file", "--redis", "--resume")
}

// with opens the store and calls f with a client.
func with(t *testing.T, p stores.Location, f func(c *durable.Client)) {
	t.Helper()
	st, closeStore, err := p.Open(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	f(durable.New(st))
}

// must runs the program and checks that it succeeds and prints want.
func must(t *testing.T, want string, args ...string) {
	t.Helper()
	stdout, stderr, code := clitest.Run(args...)
	if code != 0 || stdout != "" || !strings.Contains(stderr, want) {
		t.Fatalf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
	}
}

// TestTransfer moves a queue from a file to Redis and from there to another file.
func TestTransfer(t *testing.T) {
	dir, url := t.TempDir(), clitest.StartRedis(t)
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	ctx := context.Background()
	with(t, stores.Location{File: first}, func(c *durable.Client) {
		items := make([]durable.Item, 1000)
		for i := range items {
			items[i] = durable.Item{Task: durable.Task{Key: fmt.Sprint(i), Handler: "h", Body: []byte("body")}, When: durable.After(time.Hour)}
		}
		if _, err := c.ScheduleBatch(ctx, items); err != nil {
			t.Fatal(err)
		}
	})
	must(t, "exported 1,000 tasks", "export", "--file", first, one)
	must(t, "imported 1,000 tasks, kept 0", "import", "--redis", url, "--name", "queue", one)
	must(t, "exported 1,000 tasks", "export", "--redis", url, "--name", "queue", two)
	must(t, "The store is paused", "import", "--file", second, two)
	with(t, stores.Location{File: second}, func(c *durable.Client) {
		st, err := c.Stats(ctx)
		if err != nil || st.Pending != 1000 || st.Paused != 1 {
			t.Errorf("%+v, %v", st, err)
		}
	})
	must(t, "imported 0 tasks, kept 1,000", "import", "--file", second, "--resume", one)
	renamed := filepath.Join(dir, "renamed")
	must(t, "imported 1,000 tasks, kept 0", "import", "--file", renamed, "--rename-handler", "h=new", one)
	with(t, stores.Location{File: renamed}, func(c *durable.Client) {
		info, err := c.Get(ctx, "7")
		if err != nil || info.Task.Handler != "new" || string(info.Task.Body) != "body" {
			t.Errorf("%+v, %v", info, err)
		}
	})
	with(t, stores.Location{File: second}, func(c *durable.Client) {
		if st, err := c.Stats(ctx); err != nil || st.Paused != 0 {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

func TestTransfer_Failures(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "file")
	with(t, stores.Location{File: data}, func(*durable.Client) {})
	if err := os.WriteFile(file, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := miniredis.RunT(t)
	url := "redis://" + m.Addr()
	for want, args := range map[string][]string{
		"no such file: " + dir + "/none":                     {"export", "--file", dir + "/none", file + "2"},
		file + " already exists":                             {"export", "--file", data, file},
		"line 1: this is not a file of exported tasks":       {"import", "--file", data, file},
		"line 1: the file ends too early":                    {"import", "--file", dir + "/new", os.DevNull},
		"no such file":                                       {"import", "--file", data, file + "3"},
		"connection refused":                                 {"export", "--redis", "redis://127.0.0.1:1", file + "4"},
		`no store named "none" on the server of --redis`:     {"export", "--redis", url, "--name", "none", file + "5"},
		`no store named "tickless" on the server of --redis`: {"export", "--redis", url, "-"},
	} {
		stdout, stderr, code := clitest.Run(args...)
		if code != cli.ExitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	if keys := m.Keys(); len(keys) != 0 {
		t.Errorf("keys on the server: %q", keys)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*")); len(list) != 2 {
		t.Errorf("left behind: %q", list)
	}
}
