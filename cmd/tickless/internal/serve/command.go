// Package serve is the command that runs the service: the API, the page, and a worker that
// makes the calls.
package serve

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
	"github.com/tickless/tickless/service/api"
)

// flags are the flags of the command. Each has an environment variable too: TICKLESS_LISTEN
// for --listen.
type flags struct {
	location stores.Location

	listen, data, tokenFile, secretFile, prefix string
	hosts, queues, allow                        []string
	unsigned, readOnly                          bool
	concurrency, perHost, keepRuns              int
	keepFor, shutdown                           time.Duration
	keepBytes                                   int64

	allowed []netip.Prefix
}

// NewCommand returns the command serve.
func NewCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Calls URLs at a time or by cron: an API, a page and a worker",
		Long: `Serves an HTTP API that schedules calls of URLs, and a page that shows them, and
makes the calls. The tasks are in a file of the folder --data, or on the server of
--redis or --postgres, which several nodes may share.

On a loopback address no token is needed. Any other address needs --token-file, whose
lines have a name, ro or rw, and a secret of at least 24 characters.

Calls are signed according to Standard Webhooks with the secrets of --secret-file, one a
line. The file is made at the first start. To change a secret, add a line, restart, wait
until all receivers know it, and remove the old line.

Each flag has an environment variable, such as TICKLESS_LISTEN for --listen. SIGTERM
ends the service when running calls have ended, within --shutdown-timeout.`,
		Example: `  tickless serve --data /var/lib/tickless
  tickless serve --listen :8080 --token-file tokens --redis redis://localhost:6379 --secret-file secrets
  tickless serve --data . --allow 127.0.0.0/8      receivers on this machine`,
		Args: cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := setFromEnvironment(cmd.Flags()); err != nil {
				return cli.UsageError{Err: err}
			}
			if err := f.complete(); err != nil {
				return cli.UsageError{Err: err}
			}
			return serve(cmd, &f)
		},
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&f.listen, "listen", "127.0.0.1:7420", "address to listen on; port 0 takes a free one")
	set.StringVar(&f.data, "data", "", "folder for the tasks and the secret, if they are in a file")
	f.location.AddServerFlags(set, "")
	set.StringVar(&f.tokenFile, "token-file", "", "file of tokens")
	set.StringVar(&f.secretFile, "secret-file", "", "file of the secrets that sign calls (default: secrets in the folder --data)")
	set.BoolVar(&f.unsigned, "unsigned", false, "do not sign calls")
	set.StringSliceVar(&f.allow, "allow", nil, "also call private addresses in this range, such as 10.0.0.0/8")
	set.StringSliceVar(&f.queues, "queues", []string{callback.Name}, "names of the queues; the first is the default")
	set.StringSliceVar(&f.hosts, "host", nil, "host name that requests may have, besides those of loopback addresses")
	set.StringVar(&f.prefix, "prefix", "", "prefix of all paths, such as /tickless")
	set.BoolVar(&f.readOnly, "read-only", false, "refuse every change")
	set.IntVar(&f.concurrency, "concurrency", durable.DefaultConcurrency, "calls at a time")
	set.IntVar(&f.perHost, "per-host", 64, "calls at a time to one host")
	set.DurationVar(&f.keepFor, "keep-for", api.DefaultRetention.For, "how long records of finished runs are kept, unless the task says otherwise")
	set.IntVar(&f.keepRuns, "keep-runs", api.DefaultRetention.Runs, "how many records of a key are kept, unless the task says otherwise")
	set.Int64Var(&f.keepBytes, "keep-bytes", 1<<30, "about how many bytes all records may take; the oldest go first, 0 for any number")
	set.DurationVar(&f.shutdown, "shutdown-timeout", 20*time.Second, "how long running calls may take after SIGTERM")
	return cmd
}

// setFromEnvironment sets the flags that are not given from environment variables.
func setFromEnvironment(set *pflag.FlagSet) error {
	var errs []error
	set.VisitAll(func(x *pflag.Flag) {
		name := "TICKLESS_" + strings.ToUpper(strings.ReplaceAll(x.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok && !x.Changed {
			if err := set.Set(x.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	return errors.Join(errs...)
}

// complete checks the flags and fills in what follows from others.
func (f *flags) complete() error {
	host, port, err := net.SplitHostPort(f.listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	onServer := f.location.URL != "" || f.location.Postgres != ""
	switch {
	case (f.data == "") != onServer || f.location.Count() > 1:
		return errors.New("name the store with one of --data, --redis and --postgres")
	case f.tokenFile == "" && !isLoopback(host):
		return fmt.Errorf("%s is not a loopback address, so --token-file is required", f.listen)
	case onServer && f.secretFile == "" && !f.unsigned:
		return errors.New("with --redis or --postgres, give --secret-file, the same on all nodes, or --unsigned")
	case f.unsigned && f.secretFile != "":
		return errors.New("give either --secret-file or --unsigned")
	case f.concurrency < 1 || f.concurrency > 1_000_000 || f.perHost < 1 || f.perHost > 10_000 || f.keepBytes < 0 || f.shutdown < 0:
		return errors.New("--concurrency must be from 1 to 1000000 and --per-host from 1 to 10000; --keep-bytes and --shutdown-timeout must not be negative")
	case !isPrefix.MatchString(f.prefix):
		return fmt.Errorf("--prefix must be a path such as /tickless, of letters, digits and -._~, got %q", f.prefix)
	case len(f.queues) == 0:
		return errors.New("--queues is empty")
	case len(slices.Compact(slices.Sorted(slices.Values(f.queues)))) != len(f.queues):
		return errors.New("--queues names a queue twice")
	}
	for _, queue := range f.queues {
		task := durable.Item{When: durable.After(0), Task: durable.Task{Key: "k", Handler: queue, Retention: durable.Retention{For: f.keepFor, Runs: f.keepRuns}}}
		if _, err := task.Stored(); err != nil {
			return fmt.Errorf("--queues, --keep-for or --keep-runs: %w", err)
		}
	}
	for i, host := range f.hosts {
		if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, "/:") {
			return fmt.Errorf("--host takes names such as tasks.example, got %q", host)
		}
		f.hosts[i] = strings.ToLower(host)
	}
	for _, s := range f.allow {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return fmt.Errorf("--allow takes ranges such as 10.0.0.0/8: %w", err)
		}
		f.allowed = append(f.allowed, p)
	}
	if f.data != "" {
		f.location.File = filepath.Join(f.data, "tasks.db")
		if f.secretFile == "" {
			f.secretFile = filepath.Join(f.data, "secrets")
		}
	}
	return nil
}

// isPrefix matches paths that neither a URL nor a pattern of http.ServeMux escapes.
var isPrefix = regexp.MustCompile(`^(/[\w~-][\w.~-]*)*/?$`)

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
