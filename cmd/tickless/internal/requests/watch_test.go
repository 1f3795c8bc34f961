package requests

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/observe/debug"
	"github.com/tickless/tickless/timer"
)

// The debug page shows the Scheduler of the running load.
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
	var page struct{ Schedulers []struct{ Name string } }
	resp, err := http.Get(url + "?format=json")
	if err != nil {
		t.Fatal(err)
	}
	err = json.NewDecoder(resp.Body).Decode(&page)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Schedulers) == 0 || page.Schedulers[0].Name != "requests" {
		t.Errorf("the page has the Schedulers %v", page.Schedulers)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	sum, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(sum), " requests: ") || !strings.Contains(string(sum), " 0 lost") {
		t.Errorf("the command ended with %q, %v", sum, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The page answers at the printed URL.
func TestPageURL(t *testing.T) {
	for listens, want := range map[string]string{
		"0.0.0.0:6060":   "http://localhost:6060/",
		"[::]:6060":      "http://localhost:6060/",
		"127.0.0.1:6060": "http://127.0.0.1:6060/",
		"[::1]:6060":     "http://[::1]:6060/",
	} {
		url := pageURL(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listens)))
		w := httptest.NewRecorder()
		debug.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		if url != want || w.Code != http.StatusOK {
			t.Errorf("%s is shown as %s, which answers %d", listens, url, w.Code)
		}
	}
}

// hasty is a backend whose timers fire at once, and the first one twice.
type hasty struct{ Backend }

func (hasty) Start(i int, _ time.Duration, f func()) error {
	f()
	if i == 0 {
		f()
	}
	return nil
}

// With --http, the command also fails if timers fire early or twice.
func TestRepeat_BrokenPromises(t *testing.T) {
	p, err := NewPlan(Config{Count: 10, Duration: time.Millisecond, MinDelay: time.Hour, MaxDelay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("over")
	served := make(chan error, 1)
	served <- over // after one load
	sum, err := repeatLoad(t.Context(), io.Discard, p, hasty{NewStdBackend(10)}, served)
	if !errors.Is(err, over) {
		t.Fatal(err)
	}
	if err := sum.faultsError(sum.Lost); err == nil || err.Error() != "FAILED: faults of tickless: early: 10; fired twice or after Stop: 1" {
		t.Errorf("the error is %v, of %+v", err, sum)
	}
}

// After an interruption, timers that Close counted as pending do not fire. Otherwise they
// would be counted twice.
func TestWatchBackend_Interrupted(t *testing.T) {
	c := config()
	c.Duration = time.Minute
	c.Count = 100_000
	p, err := NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := &keepOpenBackend{ctx: ctx, ticklessBackend: newTicklessBackend(c.Count)}
	b.ticklessBackend.Open()
	r, err := p.Run(ctx, endingAt(100, b, cancel))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.scheduler.Start(time.Hour, func() {}); !errors.Is(err, timer.ErrClosed) {
		t.Errorf("a timer can still be started and fire: %v", err)
	}
	if !r.Interrupted || r.Started == 0 || r.Lost != 0 || r.Started != r.Fired+r.Stopped+r.Pending {
		t.Errorf("%+v", r)
	}
	if left, err := b.ticklessBackend.Close(); left != 0 || err != nil {
		t.Errorf("closed again: %d are pending, %v", left, err)
	}
}
