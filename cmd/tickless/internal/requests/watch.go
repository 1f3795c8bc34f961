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

// runWithPage repeats the load on one Scheduler until it is interrupted, and serves the
// debug page.
func runWithPage(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	l, hosts, err := listen(f.httpAddress)
	if err != nil {
		return err
	}
	b := &keepOpenBackend{ctx: ctx, ticklessBackend: newTicklessBackend(f.config.Count, append(f.options(), timer.WithName("requests"))...)}
	plan, err := NewPlan(f.config)
	if err != nil {
		return err
	}
	b.ticklessBackend.Open()
	server := &http.Server{Handler: debug.Handler(debug.WithHosts(hosts...)), ReadHeaderTimeout: 10 * time.Second}
	serverErr := make(chan error, 1)
	go func() { serverErr <- server.Serve(l) }()
	defer server.Close()
	fmt.Fprintf(stdout, "%s shows the load, which repeats until you interrupt it\n", pageURL(l.Addr()))

	sum, err := repeatLoad(ctx, stderr, plan, b, serverErr)
	if err != nil {
		return err
	}
	stillPending, err := b.ticklessBackend.Close() // 0 if the last load was interrupted
	sum.Pending += int64(stillPending)
	fmt.Fprintf(stdout, "%s requests: %s answered, %s timed out, %s pending, %s lost\n", cli.GroupDigits(sum.Started),
		cli.GroupDigits(sum.Stopped), cli.GroupDigits(sum.Fired), cli.GroupDigits(sum.Pending), cli.GroupDigits(sum.Lost))
	return errors.Join(err, sum.faultsError(sum.Lost))
}

// repeatLoad runs the plan on b repeatedly, until ctx ends or the HTTP server fails. It
// returns the sum of the results.
func repeatLoad(ctx context.Context, stderr io.Writer, plan *Plan, b Backend, serverErr <-chan error) (Result, error) {
	var sum Result
	for runs := 1; ctx.Err() == nil; runs++ {
		announceRun(stderr, fmt.Sprintf("load %d", runs), plan.config)
		r, err := plan.Run(ctx, b)
		if err != nil {
			return sum, err
		}
		sum.Started, sum.Stopped, sum.Fired = sum.Started+r.Started, sum.Stopped+r.Stopped, sum.Fired+r.Fired
		sum.Pending, sum.Lost = sum.Pending+r.Pending, sum.Lost+r.Lost
		sum.Early, sum.FiredTwiceOrAfterStop = sum.Early+r.Early, sum.FiredTwiceOrAfterStop+r.FiredTwiceOrAfterStop
		select {
		case err := <-serverErr:
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

// keepOpenBackend keeps its Scheduler open for several loads, until ctx ends.
type keepOpenBackend struct {
	*ticklessBackend
	ctx context.Context
}

func (*keepOpenBackend) Open() {}

// Between loads, Close only counts the pending timers. After an interruption, it also
// closes the Scheduler, so that no counted timer fires.
func (b *keepOpenBackend) Close() (int, error) {
	if b.ctx.Err() != nil {
		return b.ticklessBackend.Close()
	}
	return b.scheduler.Len(), nil
}
