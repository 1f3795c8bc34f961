package requests

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The page of the running load has its Scheduler, and a durable Client and Worker whose
// Scheduler has a name too.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := NewCommand()
	out, in := io.Pipe()
	cmd.SetOut(in)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--http", ":0", "--count", "1000", "--duration", "100ms", "--delay-max", "150ms"})
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		in.Close()
		ended <- err
	}()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err, <-ended)
	}
	url, _, _ := strings.Cut(line, " ")
	var page struct {
		Schedulers []struct{ Name string }
		Sources    []struct {
			Kind, Name string
			Numbers    map[string]any
		}
	}
	for claimed := 0.; claimed == 0; {
		resp, err := http.Get(url + "?format=json")
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Sources {
			if s.Kind == "durable.worker" && s.Name == "mailer" {
				handlers, _ := s.Numbers["attempt.claimed"].(map[string]any)
				claimed, _ = handlers["remind"].(float64)
			}
		}
	}
	names := make(map[string]bool)
	for _, s := range page.Schedulers {
		names[s.Name] = true
	}
	if !names["requests"] || !names["mailer"] {
		t.Errorf("the page has the Schedulers %v", names)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	sum, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(sum), " requests: ") || !strings.Contains(string(sum), " 0 lost") {
		t.Errorf("it ended with %q, %v", sum, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
