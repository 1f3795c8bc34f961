package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
	"github.com/tickless/tickless/service"
	"github.com/tickless/tickless/service/api"
)

// lease is how long the calls of a node that died wait. Tests shorten it.
var lease = durable.DefaultLease

// serve runs the service until the command's context ends.
func serve(cmd *cobra.Command, f *flags) (err error) {
	ctx := cmd.Context()
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	var tokens []service.Token
	if f.tokenFile != "" {
		file, err := os.Open(f.tokenFile)
		if err != nil {
			return err
		}
		tokens, err = service.ReadTokens(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.tokenFile, err)
		}
	}
	if f.data != "" {
		if err := os.MkdirAll(f.data, 0o700); err != nil {
			return err
		}
	}
	st, closeStore, err := f.location.CheckAndOpen(ctx, cmd.ErrOrStderr(), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	defer listener.Close()

	client := durable.New(st, durable.WithLogger(log))
	calls, err := f.caller(listener.Addr())
	if err != nil {
		return err
	}
	defer calls.Close()
	worker := durable.NewWorker(client, durable.WithConcurrency(f.concurrency), durable.WithLease(lease), durable.WithShutdownTimeout(f.shutdown), durable.WithName("serve"))
	for _, queue := range f.queues {
		worker.Handle(queue, api.Handler(client, calls.Handle))
	}
	retention := durable.Retention{For: f.keepFor, Runs: f.keepRuns}
	handler := service.New(client, service.Config{Queues: f.queues, Retention: retention, CheckURL: calls.CheckURL, RecordBytes: f.keepBytes, Tokens: tokens, Hosts: f.hosts,
		Prefix: f.prefix, ReadOnly: f.readOnly, Log: log, Worker: worker})
	server := newServer(handler, log)
	workerCtx, stopWorker := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorker()
	workerEnded, serverEnded := make(chan error, 1), make(chan error, 1)
	go func() { workerEnded <- worker.Run(workerCtx) }()
	go func() { serverEnded <- server.Serve(listener) }()
	go handler.Run(workerCtx)
	fmt.Fprintf(cmd.OutOrStdout(), "listening on http://%s%s\n", listener.Addr(), f.prefix)

	select {
	case <-ctx.Done():
	case err = <-workerEnded: // a permanent problem of the store
		workerEnded <- nil
	case err = <-serverEnded:
	}
	// Requests that are under way end first, since they may schedule tasks.
	shutdownCtx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(shutdownCtx))
	stopWorker()
	return errors.Join(err, <-workerEnded)
}

// newServer returns the server. Its limits cut off clients that are slow.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
}

// caller returns what makes the calls. It refuses the service's own address.
func (f *flags) caller(own net.Addr) (*callback.Caller, error) {
	opts := []callback.Option{callback.WithPerHost(f.perHost), callback.WithAllowed(f.allowed...), callback.WithRefused(isOwn(own))}
	if !f.unsigned {
		secrets, err := readSecrets(f.secretFile, f.data != "")
		if err != nil {
			return nil, err
		}
		opts = append(opts, callback.WithSecrets(secrets...))
	}
	return callback.New(opts...), nil
}

// isOwn returns a function that reports whether an address is the service's own: its port,
// on an address of this machine.
func isOwn(own net.Addr) func(netip.AddrPort) bool {
	port := own.(*net.TCPAddr).AddrPort().Port()
	return func(a netip.AddrPort) bool {
		if a.Port() != port {
			return false
		}
		ip := a.Addr().Unmap()
		if ip.IsLoopback() || ip.IsUnspecified() {
			return true
		}
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			return true
		}
		for _, x := range addresses {
			if p, err := netip.ParsePrefix(x.String()); err == nil && p.Addr() == ip {
				return true
			}
		}
		return false
	}
}
