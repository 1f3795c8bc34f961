package tasks

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
	"github.com/tickless/tickless/service"
	"github.com/tickless/tickless/service/api"
)

// onService runs f with a service, and a receiver that answers 404 to calls of /bad.
func onService(t *testing.T, f func(s *subject, receiver string)) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			http.Error(w, "out of paper", http.StatusNotFound)
		}
	}))
	defer receiver.Close()
	st, closeStore, err := stores.Location{File: filepath.Join(t.TempDir(), "tasks.db")}.Open(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	quiet := slog.New(slog.DiscardHandler)
	client := durable.New(st, durable.WithLogger(quiet))
	calls := callback.New(callback.WithAllowed(netip.MustParsePrefix("127.0.0.0/8")))
	defer calls.Close()
	w := durable.NewWorker(client, durable.WithName("serve"))
	w.Handle(callback.Name, api.Handler(client, calls.Handle))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	defer func() { _ = w.Close(); <-ended }()
	tokens, err := service.ReadTokens(strings.NewReader("r ro reader-reader-reader-reader\nw rw writer-writer-writer-writer"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service.New(client, service.Config{Tokens: tokens, Log: quiet, Prefix: "/tickless"}))
	defer server.Close()
	t.Setenv("TICKLESS_TOKEN_FILE", writeFile(t, "w rw writer-writer-writer-writer\n"))
	f(&subject{t, []string{"--url", server.URL + "/tickless"}, client}, receiver.URL)
}

func writeFile(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The commands do to a service's tasks over its API what they do to a store.
func TestTasks_Service(t *testing.T) {
	onService(t, func(s *subject, receiver string) {
		s.prints("order created", "add", "order", "--call", receiver, "--body", "b", "--header", "Authorization=Bearer 1234", "--after", "1h", "--max-attempts", "3", "--group", "g")
		if _, errs := s.run(cli.ExitFailed, "", "add", "order", "--call", receiver); !strings.Contains(errs, "has a task already") {
			s.Error(errs)
		}
		s.prints("order replaced", "change", "order", "--timeout", "5s", "--header", "Authorization=Bearer 5678", "--header", "X-A=1")
		s.prints("order replaced", "change", "order", "--method", "PUT") // leaves the secret, which is shown as dots
		info, err := s.client.Get(ctx, "order")
		if err != nil {
			s.Fatal(err)
		}
		r, err := callback.Parse(info.Task.Body)
		if err != nil || info.Task.Timeout != 5*time.Second || string(r.Body) != "b" || r.Headers["Authorization"] != "Bearer 5678" || r.Method != "PUT" || time.Until(info.At) < 50*time.Minute {
			s.Fatalf("%v %+v %+v", err, r, info)
		}
		s.prints("order pending", "list", "--group", "g", "--prefix", "or", "--state", "pending")
		if out, _ := s.run(0, "", "get", "order"); !strings.Contains(out, `"Authorization":"••`) || strings.Contains(out, "5678") {
			s.Error(out)
		}
		s.prints("is due", "explain", "order")
		s.prints("order moved", "pause", "order")
		s.prints("order paused", "list", "--state", "paused")
		s.prints("order moved", "resume", "order")
		s.prints("order moved", "run", "order")
		s.becomes("order", "gone")
		s.prints("order http done", "runs", "order")
		s.prints("order http done", "runs", "--handler", "http", "--prefix", "ord")
		s.prints("order done", "list", "--state", "past")
		s.prints("ended 20", "get", "order")
		s.prints(`"done": true`, "get", "order", "--json")

		s.prints("daily created", "add", "daily", "--call", receiver, "--cron", "0 9 * * *", "--zone", "Europe/Berlin")
		s.prints("daily replaced", "change", "daily", "--cron", "0 8 * * *")
		info, err = s.client.Get(ctx, "daily")
		if err != nil || info.Task.Cron != "0 8 * * *" || info.Task.Zone != "Europe/Berlin" {
			s.Fatalf("%v %+v", err, info)
		}
		s.prints("3 runs within 72h0m0s", "upcoming", "--for", "72h")
		s.prints("daily moved", "change", "daily", "--after", "1h")
		s.prints("daily removed", "cancel", "daily", "--yes")

		for i := range 3 {
			s.prints("created", "add", fmt.Sprint("dead-", i), "--call", receiver+"/bad?token=hush")
			s.becomes(fmt.Sprint("dead-", i), "dead")
		}
		s.prints("died 20", "get", "dead-0")
		s.prints(`"state": "dead", "at": "20`, "get", "dead-0", "--json")
		s.prints(`"failures": [ { "attempt": 1, "time": "20`, "get", "dead-0", "--json")
		s.prints(", attempt 1: POST http", "get", "dead-0")
		s.prints("404 Not Found", "list", "--state", "dead", "--error", "404")
		if out, errs := s.run(cli.ExitFailed, "y\n", "cancel", "dead-0", "none"); !strings.Contains(out, "dead-0 absent") && !strings.Contains(errs, "2 of 2") {
			s.Errorf("a dead letter is cancelled: %q, %q", out, errs)
		}
		s.prints("dead-0 moved", "requeue", "dead-0")
		s.becomes("dead-0", "dead")
		s.prints("1 dead letters requeued", "requeue", "--prefix", "dead-", "--limit", "1")
		eventually(s.T, func() bool {
			st, err := s.client.Stats(ctx)
			return err == nil && st.Died == 5
		})
		s.prints("3 dead letters requeued", "requeue", "--all")
		eventually(s.T, func() bool {
			st, err := s.client.Stats(ctx)
			return err == nil && st.Died == 8
		})
		s.prints("dead-2 removed", "purge", "dead-2", "--yes")
		s.prints("dead-2 failed", "list", "--state", "past", "--prefix", "dead-2")
		s.prints(`"done": false`, "list", "--state", "past", "--prefix", "dead-2", "--json")
		s.prints("state failed", "get", "dead-2")
		s.prints("and has no dead letter: ", "explain", "dead-2")
		s.prints("2 dead letters deleted", "purge", "--all", "--yes")
		s.prints("dead 0", "stats")

		for i := range 3 {
			s.prints("created", "add", fmt.Sprint("paused-", i), "--call", receiver, "--paused")
		}
		s.prints("waits created", "add", "waits", "--call", receiver, "--after", "1h")
		s.prints(`"count": 2`, "cancel", "--prefix", "paused-", "--limit", "2", "--yes", "--json")
		s.prints("2 tasks cancelled", "cancel", "--all", "--yes")

		s.prints("", "pause", "--handler", "http", "--note", "why not")
		s.prints("", "limit", "http", "--concurrency", "2", "--group-rate", "9")
		s.prints("", "limit", "http", "--rate", "0.5", "--group-rate", "0")
		s.prints("http 2 0.5 - - ", "limits")
		s.prints("", "limit", "http", "--group-concurrency", "1")
		s.prints("http 2 0.5 1 - ", "limits")
		s.prints("why not", "limits")
		s.prints("", "resume", "--handler", "http")
		s.prints("", "limit", "http", "--remove")
		if err := errors.Join(s.client.PauseHandler(ctx, "old", "gone"), s.client.SetLimit(ctx, "old", durable.Limit{Rate: 7})); err != nil {
			s.Fatal(err)
		}
		s.prints("old - 7 - - 20", "limits")
		s.prints("", "resume", "--handler", "old")
		s.prints("", "limit", "old", "--remove")
		s.run(cli.ExitFailed, "", "pause", "--handler", "old")
		host, _ := os.Hostname()
		s.prints(host, "workers")
		for _, command := range []string{"list", "upcoming", "workers", "limits", "stats", "runs"} {
			s.prints("", command, "--json")
		}
	})
}

// What a service does not have, refuses or does not know is said, with the exit codes of a
// store.
func TestTasks_ServiceRefuses(t *testing.T) {
	onService(t, func(s *subject, receiver string) {
		s.prints("there created", "add", "there", "--call", receiver, "--after", "1h")
		for _, x := range []struct {
			code int
			want string
			args []string
		}{
			{cli.ExitUsage, "a service does not have verify", []string{"verify"}},
			{cli.ExitUsage, "a service does not have sync", []string{"sync", "-"}},
			{cli.ExitUsage, "one of --file", []string{"list", "--file", "x"}},
			{cli.ExitUsage, "--all: ", []string{"pause", "--all"}},
			{cli.ExitUsage, "--from: ", []string{"list", "--from", "-1h"}},
			{cli.ExitUsage, "--start", []string{"add", "k", "--call", receiver, "--every", "1h", "--start", "1h"}},
			{cli.ExitUsage, "--missed-after", []string{"add", "k", "--call", receiver, "--after", "1h", "--missed", "dead"}},
			{cli.ExitUsage, "--missed-after", []string{"add", "k", "--call", receiver, "--after", "1h", "--missed-after", "5s"}},
			{cli.ExitUsage, "--missed-after", []string{"change", "there", "--missed", "dead"}},
			{cli.ExitUsage, "--missed-after", []string{"change", "there", "--missed-after", "5s"}},
			{cli.ExitUsage, "duration", []string{"add", "k", "--call", receiver, "--missed", "dead", "--missed-after", "-5s"}},
			{cli.ExitUsage, "duration", []string{"add", "k", "--call", receiver, "--timeout", "-5s"}},
			{cli.ExitUsage, "duration", []string{"add", "k", "--call", receiver, "--unique", "-5s"}},
			{cli.ExitUsage, "duration", []string{"add", "k", "--call", receiver, "--keep-for", "-5s"}},
			{cli.ExitUsage, "Retention", []string{"add", "k", "--call", receiver, "--keep-runs", "-5"}},
			{cli.ExitUsage, "MaxAttempts", []string{"add", "k", "--call", receiver, "--max-attempts", "-5"}},
			{cli.ExitUsage, "zone", []string{"add", "k", "--call", receiver, "--zone", "Europe/Berlin"}},
			{cli.ExitUsage, "one of", []string{"add", "k", "--call", receiver, "--every", "1h", "--at", "now"}},
			{cli.ExitUsage, "give --call", []string{"add", "k"}},
			{cli.ExitUsage, "61", []string{"add", "k", "--call", receiver, "--cron", "61 * * * *"}},
			{cli.ExitUsage, "Nowhere", []string{"add", "k", "--call", receiver, "--cron", "@daily", "--zone", "Europe/Nowhere"}},
			{cli.ExitUsage, "ftp", []string{"add", "k", "--call", "ftp://x"}},
			{cli.ExitUsage, "there is no queue", []string{"add", "k", "--call", receiver, "--handler", "none"}},
			{cli.ExitUsage, "cursor", []string{"list", "--after", "!"}},
			{cli.ExitUsage, "rate", []string{"limit", "http", "--rate", "-1"}},
			{cli.ExitUsage, "rate", []string{"limit", "http", "--rate", "NaN"}},
			{cli.ExitUsage, "Rate", []string{"limit", "http", "--rate", "1e-9"}},
			{cli.ExitUsage, "rate", []string{"limit", "http", "--group-rate", "-Inf"}},
			{cli.ExitUsage, "concurrency", []string{"limit", "http", "--concurrency", "-1"}},
			{cli.ExitFailed, "no queue", []string{"limit", "none", "--rate", "1"}},
			{cli.ExitFailed, "no such task", []string{"get", "none"}},
			{cli.ExitFailed, "1 of 1", []string{"run", "none"}},
		} {
			if _, errs := s.run(x.code, "", x.args...); !strings.Contains(errs, x.want) {
				t.Errorf("%q: want %q, got %q", x.args, x.want, errs)
			}
		}
		url := s.flags[1]
		for token, want := range map[string]string{"reader-reader-reader-reader": "may only read", "wrong": "401"} {
			if _, errs := s.run(cli.ExitFailed, "", "pause", "--handler", "http", "--token-file", writeFile(t, token)); !strings.Contains(errs, want) {
				t.Errorf("%s: %q", token, errs)
			}
		}
		for flag, want := range map[string]string{"x": "http or https", "http://127.0.0.1:1": "connection refused", strings.TrimSuffix(url, "/tickless"): "404"} {
			_, errs, code := clitest.Run("tasks", "stats", "--url", flag)
			if code == 0 || (code == cli.ExitUsage) != (flag == "x") || !strings.Contains(errs, want) {
				t.Errorf("%s: exit code %d, %q", flag, code, errs)
			}
		}
	})
}
