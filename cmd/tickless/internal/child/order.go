package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// ReadOrder is what a child begins with: it reads its order from in, and says so on out.
// From then on the process ignores interrupts and hang-ups, which a terminal sends to it
// too where it has no group of its own: its parent ends it.
func ReadOrder(in io.Reader, out io.Writer, order any) error {
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	if err := json.NewDecoder(in).Decode(order); err != nil {
		return cli.UsageError{Err: errors.New("--child is not for use by hand")}
	}
	_, err := io.WriteString(out, begun)
	return err
}

// WithParent returns a context that is done when the parent closes the child's input,
// be it because it dies.
func WithParent(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}
