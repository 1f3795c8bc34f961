package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/observe/debug"
	"github.com/tickless/tickless/timer"
)

// watch repeats the load on one Scheduler until it is interrupted, and serves the debug
// page.
func watch(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	l, hosts, err := listen(f.httpAddress)
	if err != nil {
		return err
	}
	b := &watchBackend{ctx: ctx, tickless: newTickless(f.config.Count, append(f.options(), timer.WithName("requests"))...)}
	plan, err := NewPlan(f.config)
	if err != nil {
		return err
	}
	b.tickless.Open()
	server := &http.Server{Handler: debug.Handler(debug.WithHosts(hosts...)), ReadHeaderTimeout: 10 * time.Second}
	serverEnded := make(chan error, 1)
	go func() { serverEnded <- server.Serve(l) }()
	defer server.Close()
	fmt.Fprintf(stdout, "%s shows the load, which repeats until you interrupt it\n", pageURL(l.Addr()))

	sum, err := repeat(ctx, stderr, plan, b, serverEnded)
	if err != nil {
		return err
	}
	stillPending, err := b.tickless.Close() // 0 if the last load was interrupted
	sum.Pending += int64(stillPending)
	fmt.Fprintf(stdout, "%s requests: %s answered, %s timed out, %s pending, %s lost\n", cli.Thousands(sum.Started),
		cli.Thousands(sum.Stopped), cli.Thousands(sum.Fired), cli.Thousands(sum.Pending), cli.Thousands(sum.Lost))
	return errors.Join(err, sum.faults(sum.Lost))
}

// repeat runs the plan on b repeatedly, until ctx ends or the HTTP server fails. It
// returns the sum of the results.
func repeat(ctx context.Context, stderr io.Writer, plan *Plan, b Backend, serverEnded <-chan error) (Result, error) {
	var sum Result
	for runs := 1; ctx.Err() == nil; runs++ {
		announce(stderr, fmt.Sprintf("load %d", runs), plan.cfg)
		r, err := plan.Run(ctx, b)
		if err != nil {
			return sum, err
		}
		sum.Started, sum.Stopped, sum.Fired = sum.Started+r.Started, sum.Stopped+r.Stopped, sum.Fired+r.Fired
		sum.Pending, sum.Lost = sum.Pending+r.Pending, sum.Lost+r.Lost
		sum.Early, sum.Wrong = sum.Early+r.Early, sum.Wrong+r.Wrong
		select {
		case err := <-serverEnded:
			return sum, err
		default:
		}
	}
	return sum, nil
}

// listen listens on an address. Without a host, it listens only on the loopback
// interface. The result hosts is for debug.WithHosts.
func listen(address string) (l net.Listener, hosts []string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, cli.UsageError{Err: fmt.Errorf("--http takes an address such as :0 or localhost:6060: %w", err)}
	}
	if host == "" {
		host = "localhost"
	} else {
		hosts = append(hosts, host)
	}
	l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, port))
	return l, hosts, err
}

// pageURL returns the URL of the page. If addr stands for all addresses of the machine,
// the URL has the host localhost.
func pageURL(addr net.Addr) string {
	if a, ok := addr.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d/", a.Port)
	}
	return fmt.Sprintf("http://%s/", addr)
}

// watchBackend keeps its Scheduler open for several loads, until ctx ends.
type watchBackend struct {
	*tickless
	ctx context.Context
}

func (*watchBackend) Open() {}

// Between loads, Close only counts the pending timers. After an interruption, it also
// closes the Scheduler, so that no counted timer fires.
func (b *watchBackend) Close() (int, error) {
	if b.ctx.Err() != nil {
		return b.tickless.Close()
	}
	return b.scheduler.Len(), nil
}
