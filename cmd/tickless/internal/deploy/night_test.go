//go:build unix

package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/cmd/tickless/internal/tasks"
	"github.com/tickless/tickless/durable"
)

// runNightWorker is a worker whose handler does what a task's body says.
func runNightWorker() error {
	st, closeStore, err := locationFromEnv().Open(io.Discard)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w := durable.NewWorker(durable.New(st, durable.WithLogger(slog.New(slog.DiscardHandler))), durable.WithLease(lease),
		durable.WithConcurrency(8), durable.WithVersion(os.Getenv("DEPLOY_VERSION")))
	w.Handle("mail", func(ctx context.Context, d durable.Delivery) error {
		switch string(d.Body) {
		case "fail":
			return durable.NoRetry(errors.New("smtp timeout"))
		case "hang":
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	w.Handle("report", func(context.Context, durable.Delivery) error { return nil })
	if err := w.Run(ctx); err != nil {
		return err
	}
	return closeStore()
}

// An operator has the command line alone.
type operator struct {
	*testing.T
	flags []string
}

// run runs a command of tasks and returns what it prints.
func (o *operator) run(code int, args ...string) string {
	o.Helper()
	got, out := o.try(args...)
	if got != code {
		o.Fatalf("%q: exit code %d, want %d: %s", args, got, code, out)
	}
	return out
}

// try runs a command and returns its exit code and what it prints.
func (o *operator) try(args ...string) (code int, output string) {
	root := &cobra.Command{Use: "tickless"}
	root.AddCommand(tasks.NewCommand())
	var out bytes.Buffer
	code = cli.Run(root, append(append([]string{"tasks"}, args...), o.flags...), &out, &out)
	return code, out.String()
}

// sees runs a command until it prints a text. On Redis there is no store before its first worker.
func (o *operator) sees(want string, args ...string) {
	o.Helper()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 160*time.Millisecond) {
		_, out := o.try(args...)
		if strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			return
		}
		if end, ok := o.Deadline(); ok && time.Until(end) < 10*time.Second {
			o.Fatalf("%q never printed %q, at last:\n%s", args, want, out)
		}
		time.Sleep(pause)
	}
}

// stat returns a number of stats.
func (o *operator) stat(name string) float64 {
	o.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(o.run(0, "stats", "--json")), &all); err != nil {
		o.Fatal(err)
	}
	n, _ := all[name].(float64)
	return n
}

// TestNight is a night of an operator: dead letters, a handler that is stuck, a worker that
// is killed, a wrong cron and, in a file, damage.
func TestNight(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	onEachStore(t, func(t *testing.T, l stores.Location) {
		env := []string{"DEPLOY_NIGHT=1", "DEPLOY_FILE=" + l.File, "DEPLOY_REDIS=" + l.URL, "DEPLOY_POSTGRES=" + l.Postgres}
		o := &operator{t, []string{"--file", l.File}}
		switch {
		case l.URL != "":
			o.flags = []string{"--redis", l.URL}
		case l.Postgres != "":
			o.flags = []string{"--postgres", l.Postgres}
		default: // a file is made by its first program
			st, closeStore, err := l.Open(io.Discard)
			if _, err2 := st.Check(t.Context()); errors.Join(err, err2, closeStore()) != nil {
				t.Fatal(err, err2)
			}
		}
		first := start(t, 1, env, nil)
		o.sees("report", "workers")

		// Dead letters, and half of them again.
		for i := range 6 {
			o.run(0, "add", fmt.Sprint("order-", i), "--handler", "mail", "--body", "fail")
		}
		for o.stat("dead") < 6 {
			time.Sleep(20 * time.Millisecond)
		}
		o.sees("order-5 dead", "list", "--state", "dead", "--handler", "mail", "--error", "timeout")
		o.sees("3 dead letters requeued", "requeue", "--handler", "mail", "--error", "timeout", "--limit", "3")
		for o.stat("dead") < 6 {
			time.Sleep(20 * time.Millisecond)
		}
		o.sees("6 dead letters deleted", "purge", "--handler", "mail", "--error", "timeout", "--yes")

		// A handler hangs and takes three quarters of the places. Others still run.
		for i := range 8 {
			o.run(0, "add", fmt.Sprint("stuck-", i), "--handler", "mail", "--body", "hang", "--timeout", "1h")
		}
		for o.stat("running") < 6 {
			time.Sleep(20 * time.Millisecond)
		}
		o.run(0, "add", "another", "--handler", "report")
		for strings.Contains(o.run(0, "list", "--ids"), "another") {
			time.Sleep(20 * time.Millisecond)
		}
		waits := strings.Fields(o.run(0, "list", "--state", "pending", "--handler", "mail", "--ids"))
		if len(waits) == 0 {
			t.Fatal("no task waits")
		}
		o.sees("place", "explain", waits[0])

		// Stop the handler everywhere, with the reason.
		o.run(0, "pause", "--handler", "mail", "--note", "relay is down")
		o.sees("relay is down", "limits")
		o.run(0, "add", "later", "--handler", "mail")
		o.sees("relay is down", "explain", "later")

		// The worker is killed. What it ran waits for its lease, and for the handler.
		first.end(t, true)
		o.sees("lost", "workers")
		for o.stat("running") > 0 { // nobody returns its tasks yet, except another worker
			if strings.Contains(o.run(0, "workers"), "(lost)") {
				break
			}
		}
		second := start(t, 2, env, nil)
		for o.stat("running") > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		o.sees("tasks cancelled", "cancel", "--prefix", "stuck-", "--yes")
		o.run(0, "resume", "--handler", "mail")
		for strings.Contains(o.run(0, "list", "--ids"), "later") {
			time.Sleep(20 * time.Millisecond)
		}

		// A wrong cron.
		o.run(0, "add", "daily", "--handler", "report", "--cron", "0 3 * * *")
		o.run(0, "change", "daily", "--cron", "*/30 * * * *", "--zone", "Europe/Berlin")
		o.sees("48 runs within 24h0m0s", "upcoming", "--for", "24h")
		o.run(0, "pause", "daily")
		o.sees("paused", "explain", "daily")
		o.run(0, "resume", "daily")

		// Drain, and look for damage.
		o.run(0, "pause", "--all")
		if n := o.stat("running"); n != 0 {
			t.Errorf("%v tasks run after the drain", n)
		}
		o.sees("0 requeued", "repair")
		if l.File == "" {
			o.run(0, "verify")
			second.end(t, false)
			return
		}
		backup := filepath.Join(t.TempDir(), "backup.db")
		o.run(0, "backup", backup)
		o.run(1, "restore", backup, "--yes") // a worker has the file open
		second.end(t, false)
		damage(t, l.File)
		o.run(1, "verify")
		o.run(0, "restore", backup, "--yes")
		o.sees("nothing is damaged", "verify")
		o.run(0, "resume", "--all")
		o.sees("daily pending", "list")
	})
}

// damage overwrites the name of a handler wherever it stands in a file.
func damage(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte("report"), []byte("repert")), 0o600); err != nil {
		t.Fatal(err)
	}
}
