package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
)

func TestMain(m *testing.M) { clitest.Main(m, clitest.UnderRoot(NewCommand)) }

var ctx = context.Background()

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition was false for 30 s")
		}
	}
}

// A subject is a store with a running worker, and the flags that name the store.
type subject struct {
	*testing.T
	flags  []string
	client *durable.Client
}

// run runs the program with the given standard input, checks its exit code and returns
// its output.
func (s *subject) run(code int, input string, args ...string) (stdout, stderr string) {
	s.Helper()
	stdout, stderr, got := clitest.RunWith(input, append(append([]string{"tasks"}, args...), s.flags...)...)
	if got != code {
		s.Fatalf("%q: exit code %d, want %d: %s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

// prints checks that the program's output contains want.
func (s *subject) prints(want string, args ...string) {
	s.Helper()
	if out, errs := s.run(0, "", args...); !strings.Contains(strings.Join(strings.Fields(out), " "), want) || errs != "" {
		s.Fatalf("%q: want %q, got %q, %q", args, want, out, errs)
	}
}

func (s *subject) becomes(id, state string) {
	s.Helper()
	eventually(s.T, func() bool {
		info, err := s.client.Get(ctx, id)
		return errors.Is(err, durable.ErrNotFound) && state == "gone" || err == nil && info.State.String() == state
	})
}

func (s *subject) schedule(t durable.Task, w durable.When) {
	s.Helper()
	if _, err := s.client.Schedule(ctx, t, w); err != nil {
		s.Fatal(err)
	}
}

// These tests run with a store in a file, on Redis and in PostgreSQL. They share the servers, where
// each has a store of its own, which a worker uses too.
func TestTasks_OnEachStore(t *testing.T) {
	test := func(f func(s *subject), p stores.Location, flags ...string) func(t *testing.T) {
		return func(t *testing.T) {
			st, closeStore, err := p.Open(io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			client := durable.New(st, durable.WithLogger(slog.New(slog.DiscardHandler)))
			w := durable.NewWorker(client)
			w.Handle("good", func(context.Context, durable.Delivery) error { return nil })
			w.Handle("bad", func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("out of\npaper")) })
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			defer func() {
				_ = w.Close()
				if err := errors.Join(<-ended, closeStore()); err != nil {
					t.Error(err)
				}
			}()
			f(&subject{t, flags, client})
		}
	}
	tests := []struct {
		name string
		f    func(s *subject)
	}{{"looks", looks}, {"changes", changes}}
	t.Run("file", func(t *testing.T) {
		for _, x := range tests {
			file := filepath.Join(t.TempDir(), "tasks.db")
			t.Run(x.name, test(x.f, stores.Location{File: file}, "--file", file))
		}
	})
	t.Run("redis", func(t *testing.T) {
		url := clitest.StartRedis(t)
		for _, x := range tests {
			t.Run(x.name, test(x.f, stores.Location{URL: url, StoreName: x.name, Shards: 4}, "--redis", url, "--name", x.name, "--shards", "4"))
		}
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Start(t, "fsync=off").URL("postgres")
		for _, x := range tests {
			flags := []string{"--postgres", url, "--name", x.name}
			for _, want := range []string{"0001_tables", "nothing to do"} {
				(&subject{t, flags, nil}).prints(want, "migrate")
			}
			t.Run(x.name, test(x.f, stores.Location{Postgres: url, StoreName: x.name}, flags...))
		}
	})
}

func looks(s *subject) {
	hour := durable.After(time.Hour)
	s.schedule(durable.Task{Key: `a\b`, Handler: "good", Body: []byte("body"), Headers: map[string]string{"h": "v"}}, hour)
	s.schedule(durable.Task{Key: "order-1", Handler: "good"}, hour)
	s.schedule(durable.Task{Key: "order-2", Handler: "good"}, hour)
	s.schedule(durable.Task{Key: "order-3", Handler: "bad"}, durable.After(0))
	s.schedule(durable.Task{Key: "hourly", Handler: "bad", Every: time.Hour}, durable.After(0))
	s.becomes("order-3", "dead")
	s.becomes("hourly\x00", "dead")

	s.prints(`body 4 bytes: body`, "get", `a\\b`)
	s.prints(`out of\npaper`, "list", "--state", "dead", "--handler", "bad", "--from", "-1h", "--to", "1h")
	s.prints("died 20", "get", "order-3")
	s.prints(`hourly\x00 dead`, "list", "--prefix", "hourly")
	out, _ := s.run(0, "", "list", "--prefix", "order-", "--json")
	var list struct {
		Tasks []struct {
			ID    string
			State durable.State
		}
		Next string
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Tasks) != 3 || list.Next != "" {
		s.Fatalf("%v: %s", err, out)
	}
	s.prints(`hourly\x00 dead`, "list", "--error", "of\npaper", "--prefix", "hourly")
	var ids []string
	for after := ""; ; {
		out, errs := s.run(0, "", "list", "--limit", "2", "--after", after)
		for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
			ids = append(ids, strings.Fields(line)[0])
		}
		if _, after, _ = strings.Cut(strings.TrimSpace(errs), "--after "); after == "" {
			break
		}
	}
	if len(ids) != 6 || strings.Join(ids[:4], " ") != `a\\b order-1 order-2 hourly` { // and two dead letters
		s.Errorf("pages of 2 have %q", ids)
	}

	s.prints("order-1 moved", "run", "order-1")
	s.becomes("order-1", "gone")
	if out, errs := s.run(cli.ExitFailed, "y\n", "cancel", "order-1", "order-2"); !strings.Contains(out, "removed") || !strings.Contains(errs, "1 of 2") {
		s.Errorf("cancel: %q, %q", out, errs)
	}
	s.becomes("order-2", "gone")

	s.prints("", "pause", "--all")
	s.schedule(durable.Task{Key: "now", Handler: "good"}, durable.After(0))
	out, _ = s.run(0, "", "stats", "--json")
	var st map[string]any
	if err := json.Unmarshal([]byte(out), &st); err != nil || st["paused_shards"] != st["shards"] || st["dead"] != 2.0 || st["overdue"] != 1.0 {
		s.Errorf("%v: %s", err, out)
	}
	s.prints("", "resume", "--all")
	s.becomes("now", "gone")
	s.prints("paused_shards 0", "stats")

	s.prints("1 dead letters requeued", "requeue", "--prefix", "hourly")
	eventually(s.T, func() bool { // the requeued run dies again
		st, err := s.client.Stats(ctx)
		return err == nil && st.Died == 3
	})
	for _, answer := range []string{"", "n\n", "\n"} {
		if out, errs := s.run(cli.ExitFailed, answer, "purge", "--all"); out != "" || !strings.Contains(errs, "Really purge all tasks that match?") {
			s.Errorf("purge: %q, %q", out, errs)
		}
	}
	s.prints("1 dead letters deleted", "purge", "--handler", "bad", "--yes", "--limit", "1")
	s.prints(`"count": 1`, "purge", "--all", "--yes", "--json")
	s.prints("dead 0", "stats")
}

// What the library can do to a task and to a store, the command line can.
func changes(s *subject) {
	s.prints("order created", "add", "order", "--handler", "good", "--body", "b", "--header", "h=v=w", "--after", "1h", "--max-attempts", "3")
	if _, errs := s.run(cli.ExitFailed, "", "add", "order", "--handler", "good"); !strings.Contains(errs, "has a task already") {
		s.Error(errs)
	}
	s.prints("order replaced", "change", "order", "--timeout", "5s")
	info, err := s.client.Get(ctx, "order")
	if err != nil || info.Task.Timeout != 5*time.Second || string(info.Task.Body) != "b" || info.Task.Headers["h"] != "v=w" || time.Until(info.At) < 50*time.Minute {
		s.Fatalf("%v %+v", err, info)
	}
	s.prints("order replaced", "change", "order", "--at", "now", "--keep-runs", "3")
	s.becomes("order", "gone")
	s.prints("order good done", "runs", "order")
	s.prints("order good done", "runs", "--handler", "good", "--from", "-1h")

	s.prints("call created", "add", "call", "--call", "http://x.example/", "--header", "A=b", "--after", "1h")
	if _, errs := s.run(cli.ExitUsage, "", "change", "call", "--body", "new"); !strings.Contains(errs, "--method") {
		s.Error(errs)
	}
	s.prints("call replaced", "change", "call", "--method", "PUT", "--body", "new")
	info, err = s.client.Get(ctx, "call")
	if err != nil || string(info.Task.Body) != `{"url":"http://x.example/","method":"PUT","headers":{"A":"b"},"body":"new"}` {
		s.Fatalf("%v %+v", err, info)
	}
	s.prints("call removed", "cancel", "call", "--yes")

	s.prints("daily created", "add", "daily", "--handler", "good", "--cron", "0 9 * * *", "--zone", "Europe/Berlin")
	s.prints("daily replaced", "change", "daily", "--cron", "0 8 * * *")
	info, err = s.client.Get(ctx, "daily")
	if err != nil || info.Task.Cron != "0 8 * * *" || info.Task.Zone != "Europe/Berlin" {
		s.Fatalf("%v %+v", err, info)
	}
	s.prints("3 runs within 72h0m0s", "upcoming", "--for", "72h")
	for _, args := range [][]string{{"change", "daily", "--body-file", "/none/such"}, {"change", "daily", "--zone", "Europe/Nowhere"}, {"list", "--after", "!"},
		{"runs", "--after", "!"}, {"limit", "good", "--rate", "-1"}, {"limit", "good", "--rate", "NaN"}, {"add", "k", "--handler", "good", "--call", "ftp://x"}} {
		s.run(cli.ExitUsage, "", args...)
	}
	if _, errs := s.run(cli.ExitUsage, "", "change", "daily", "--cron", "61 * * * *"); !strings.Contains(errs, "61") {
		s.Error(errs)
	}

	s.prints("later created", "add", "later", "--handler", "good", "--paused")
	s.prints("later paused", "list", "--state", "paused")
	s.prints("later moved", "resume", "later")
	s.becomes("later", "gone")

	set := `{"set": "app", "version": %d, "tasks": [%s{"key": "a", "handler": "good", "every": "1h", "body": "x"}]}`
	if out, _ := s.run(0, fmt.Sprintf(set, 7, `{"key": "b", "handler": "good", "cron": "@daily", "keep_for": "1h"}, `), "sync", "-"); !strings.Contains(out, "created") {
		s.Error(out)
	}
	if _, errs := s.run(0, fmt.Sprintf(set, 8, ""), "sync", "-"); !strings.Contains(errs, "1 task cancelled, which the set had before") {
		s.Error(errs)
	}
	s.becomes("b", "gone")
	if _, errs := s.run(cli.ExitFailed, fmt.Sprintf(set, 7, ""), "sync", "-"); !strings.Contains(errs, "higher version") {
		s.Error(errs)
	}
	if _, errs := s.run(cli.ExitFailed, `{"set": "app", "version": 9, "tasks": [{"key": "a", "handler": "good", "evry": "1h"}]}`, "sync", "-"); !strings.Contains(errs, "evry") {
		s.Error(errs)
	}

	s.prints("", "pause", "--handler", "good", "--note", "why not")
	s.prints("why not", "limits")
	s.schedule(durable.Task{Key: "waits", Handler: "good"}, durable.After(0))
	s.prints("waits too created", "add", "waits too", "--handler", "good")
	s.prints("", "resume", "--handler", "good")
	s.becomes("waits", "gone")
	s.becomes("waits too", "gone")
	if s.client.Store().Shards() == 1 {
		s.prints("", "limit", "good", "--concurrency", "2", "--group-rate", "9")
		s.prints("", "limit", "good", "--rate", "0.5", "--group-rate", "0")
		s.prints("good 2 0.5 - -", "limits")
		s.prints("", "limit", "good", "--remove")
		s.prints("[]", "limits", "--json")
	}
	host, _ := os.Hostname()
	s.prints(host, "workers")
	if out, _ := s.run(0, "", "verify"); !strings.Contains(out, "nothing is damaged") {
		s.Error(out)
	}
	s.prints("0 requeued, 0 doubled, 0 orphaned", "repair")
	if _, errs := s.run(cli.ExitFailed, `{"set": "app", "version": 9}`, "sync", "-"); !strings.Contains(errs, "tasks is missing") {
		s.Error(errs)
	}
	copied := filepath.Join(s.TempDir(), "copy.db")
	s.prints("copied", "copy", "--to-file", copied)
	if out, _, code := clitest.Run("tasks", "list", "--file", copied); code != 0 || !strings.Contains(out, "daily") {
		s.Errorf("the copy has %s", out)
	}
}

// add makes a file that does not exist a new store, and says so.
func TestTasks_AddToANewFile(t *testing.T) {
	s := &subject{t, []string{"--file", filepath.Join(t.TempDir(), "tasks.db")}, nil}
	s.run(cli.ExitFailed, "", "list")
	if _, errs := s.run(0, "", "add", "first", "--call", "https://x.example/", "--after", "1h"); !strings.Contains(errs, "is a new store") {
		t.Error(errs)
	}
	s.prints("first pending", "list")
	s.prints("second created", "add", "second", "--handler", "good", "--after", "1h")
	s.prints(`"url":"https://x.example/"`, "get", "first")
}

func TestTasks_BackupAndRestore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks.db")
	st, closeStore, err := stores.Location{File: file}.Open(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.New(st).Schedule(ctx, durable.Task{Key: "old", Handler: "h"}, durable.After(time.Hour)); err != nil {
		t.Fatal(err)
	}
	s := &subject{t, []string{"--file", file}, nil}
	s.prints("", "backup", file+".backup")
	s.prints("old removed", "cancel", "old", "--yes")
	if _, errs := s.run(cli.ExitFailed, "y\n", "restore", file+".backup"); !strings.Contains(errs, "in use") {
		t.Error(errs)
	}
	if err := closeStore(); err != nil {
		t.Fatal(err)
	}
	s.run(cli.ExitFailed, "n\n", "restore", file+".backup")
	s.run(0, "y\n", "restore", file+".backup")
	s.prints("old pending", "list")
}

// The commands of docs/operating.md work, in their order.
func TestTasks_Runbook(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	st, closeStore, err := stores.Location{File: filepath.Join(dir, "tasks.db")}.Open(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	client := durable.New(st, durable.WithLogger(slog.New(slog.DiscardHandler)))
	for _, item := range []durable.Item{
		{Task: durable.Task{Key: "order-17", Handler: "mail"}, When: durable.After(time.Hour)},
		{Task: durable.Task{Key: "report", Handler: "report", Cron: "0 9 * * *"}, When: durable.Next()},
		{Task: durable.Task{Key: "dead", Handler: "mail"}, When: durable.After(0)},
	} {
		if _, err := client.Schedule(ctx, item.Task, item.When); err != nil {
			t.Fatal(err)
		}
	}
	w := durable.NewWorker(client)
	w.Handle("mail", func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("timeout")) })
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	(&subject{t, nil, client}).becomes("dead", "dead")
	_ = w.Close()
	if err := errors.Join(<-ended, closeStore()); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for i, block := range strings.Split(string(page), "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
			commands++
			words := wordsOf(strings.ReplaceAll(line, "$STORE", "--file tasks.db"))
			cmd := clitest.ProgramCmd(words[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || words[0] != "tickless" {
				t.Fatalf("block %d: %s: %v: %s", i+1, line, err, out)
			}
		}
	}
	if commands < 20 {
		t.Errorf("the page has %d commands", commands)
	}
}

// wordsOf splits a line into words, of which those in quotation marks may have spaces.
func wordsOf(line string) (words []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

func TestTasks_CalledWrongly(t *testing.T) {
	clitest.CheckHelp(t, "tasks", "--file", "--redis", "requeue")
	file := filepath.Join(t.TempDir(), "none")
	clitest.CheckWrongCalls(t, "tasks", []clitest.WrongCall{
		{Args: []string{"bogus"}, WantError: `unknown command "bogus"`},
		{Args: []string{"stats"}, WantError: "--file, --redis, --postgres and --url"},
		{Args: []string{"stats", "--file", ""}, WantError: "--file, --redis, --postgres and --url"},
		{Args: []string{"list", "--file", file, "--redis", "redis://h"}, WantError: "--file, --redis, --postgres and --url"},
		{Args: []string{"list", "--file", file, "--url", "http://h"}, WantError: "--file, --redis, --postgres and --url"},
		{Args: []string{"verify", "--file", file, "--redis", "redis://h"}, WantError: "--file, --redis and --postgres"},
		{Args: []string{"list", "--url", "x"}, WantError: "--url must be http or https"},
		{Args: []string{"list", "--redis", "http://h"}, WantError: "--redis: "},
		{Args: []string{"list", "--postgres", "mysql://h"}, WantError: "--postgres: "},
		{Args: []string{"migrate", "--postgres", "h:x"}, WantError: "--postgres: "},
		{Args: []string{"list", "--file", file, "--cluster"}, WantError: "--cluster is for --redis"},
		{Args: []string{"list", "--postgres", "postgres://h/d", "--cluster"}, WantError: "--cluster is for --redis"},
		{Args: []string{"list", "--file", file, "--name", "n"}, WantError: "for a store on a server"},
		{Args: []string{"list", "--url", "http://h", "--name", "n"}, WantError: "not for --url"},
		{Args: []string{"list", "--file", file, "--token-file", file}, WantError: "--token-file is for --url"},
		{Args: []string{"copy", "--file", file}, WantError: "--to-file"},
		{Args: []string{"copy", "--file", file, "--to-file", file + "2", "--to-redis", "redis://h"}, WantError: "--to-file"},
		{Args: []string{"list", "--file", file, "--state", "ill"}, WantError: "pending, paused, running, dead or past"},
		{Args: []string{"list", "--file", file, "--from", "noon"}, WantError: "neither a time"},
		{Args: []string{"list", "--file", file, "--limit", "0"}, WantError: "from 1 to 1000"},
		{Args: []string{"get", "--file", file}, WantError: "one ID"},
		{Args: []string{"get", "--file", file, `a\b\`}, WantError: "escape"},
		{Args: []string{"cancel", "--file", file}, WantError: "either IDs"},
		{Args: []string{"purge", "--file", file, "id", "--all"}, WantError: "either IDs"},
		{Args: []string{"requeue", "--file", file, "--all", "--limit", "-1"}, WantError: "positive"},
		{Args: []string{"run", "--file", file}, WantError: "give the IDs"},
		{Args: []string{"cancel", "--file", file, "--all", "--limit", "0"}, WantError: "positive"},
		{Args: []string{"get", "--file", file, "bad\xff"}, WantError: "not UTF-8"},
		{Args: []string{"add", "--file", file, ""}, WantError: "key is empty"},
		{Args: []string{"add", "--file", file, "a", "--every", "0"}, WantError: "--every must be positive"},
		{Args: []string{"pause", "--file", file, "a", "--note", "n"}, WantError: "--note is for"},
		{Args: []string{"pause", "--file", file}, WantError: "--handler, or --all"},
		{Args: []string{"resume", "--file", file, "a", "--all"}, WantError: "--handler, or --all"},
		{Args: []string{"add", "--file", file}, WantError: "one key"},
		{Args: []string{"add", "--file", file, "a", "--header", "x"}, WantError: "NAME=VALUE"},
		{Args: []string{"add", "--file", file, "a", "--at", "now", "--after", "1s"}, WantError: "not both"},
		{Args: []string{"add", "--file", file, "a", "--missed", "some"}, WantError: "latest, fire or dead"},
		{Args: []string{"runs", "--file", file, "a", "--handler", "h"}, WantError: "a key, or flags"},
		{Args: []string{"upcoming", "--file", file, "--for", "-1h"}, WantError: "positive"},
		{Args: []string{"limit", "--file", file, "a"}, WantError: "--remove"},
		{Args: []string{"limit", "--file", file, "a", "--rate", "0", "--remove"}, WantError: "--remove"},
		{Args: []string{"run", "--file", file, ""}, WantError: "ID is empty"},
		{Args: []string{"cancel", "--file", file, "a", "--limit", "3"}, WantError: "--limit is for flags"},
		{Args: []string{"runs", "--file", file, "a", "--after", "c"}, WantError: "a key, or flags"},
		{Args: []string{"change", "--file", file, "a"}, WantError: "what to change"},
		{Args: []string{"add", "--file", file, "a"}, WantError: "--handler, or --call"},
		{Args: []string{"add", "--file", file, "a", "--handler", "h", "--cron", "61 * * * *"}, WantError: "61"},
		{Args: []string{"add", "--file", file, "a", "--handler", "h", "--zone", "UTC"}, WantError: "Zone but no Cron"},
		{Args: []string{"add", "--file", file, "a", "--call", "http://x/", "--method", "get"}, WantError: "upper case"},
		{Args: []string{"backup", "x", "--redis", "redis://localhost:1"}, WantError: "--file"},
		{Args: []string{"restore", "--file", file}, WantError: "one file"},
	})
	_, stderr, code := clitest.Run("tasks", "purge", "--file", file, "--all")
	if code != cli.ExitFailed || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if list, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(list) != 0 {
		t.Errorf("left behind: %q", list)
	}
}

func TestShowID(t *testing.T) {
	for _, id := range []string{"a", `a\"b"`, "a\x00", "\xff\xfe", "ä\u202e", "a b\n"} {
		shown := escapeText(id)
		if got, err := unescapeID(shown); err != nil || got != id {
			t.Errorf("%q is shown as %s, which is %q, %v", id, shown, got, err)
		}
	}
}

// TestHideSecrets checks that a terminal never shows the password or the query of a URL.
func TestHideSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`{"url":"https://me:pw@a.example/x?token=1#f","n":1}`: `{"url":"https://...@a.example/x?...#f","n":1}`,
		"Get HTTP://u:p@ss@b/?a=b&c: refused":                 "Get HTTP://...@b/?... refused",
		"redis://:pw@c:1 and postgres://d/e":                  "redis://...@c:1 and postgres://d/e",
		"mail me@a.example? No: //x?y":                        "mail me@a.example? No: //x?y",
	} {
		if got := hideSecrets(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

func TestPrintJSON_Invisible(t *testing.T) {
	var out strings.Builder
	text := "a\u009b31m\x7f\u202eb\u2066ä"
	if err := figures.PrintJSON(&out, text); err != nil || out.String() != `"a\u009b31m\u007f\u202eb\u2066ä"`+"\n" {
		t.Errorf("printed %q, %v", out.String(), err)
	}
	var got string
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got != text {
		t.Errorf("%q became %q, %v", text, got, err)
	}
}
