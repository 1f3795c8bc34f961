package scale

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// flags are the flags of the scale command.
type flags struct {
	counts        figures.CountsFlag
	withStdlib    bool // measure time.AfterFunc too
	asJSON        bool
	childImplName string // in a child process, the implementation to measure: see runChild
}

// maxCount is the largest number of timers. A Scheduler can hold more, but few
// machines have the memory.
const maxCount = 1_000_000_000

func (f *flags) validate() error {
	if len(f.counts) == 0 {
		return errors.New("give at least one number of timers")
	}
	for _, n := range f.counts {
		if n < 1 || n > maxCount {
			return fmt.Errorf("the number of timers must be from 1 to %d, got %d", maxCount, n)
		}
	}
	if !slices.IsSorted(f.counts) {
		return errors.New("the numbers of timers must be in ascending order")
	}
	return nil
}

// NewCommand returns the command that measures very many pending timers.
func NewCommand() *cobra.Command {
	f := flags{counts: figures.CountsFlag{1_000_000, 10_000_000, 100_000_000}}
	cmd := &cobra.Command{
		Use:   "scale [flags]",
		Short: "Measures what up to 100 million pending timers cost",
		Long: `For each number of timers, starts a process with this number of timers, which are
due in hours. Prints the memory that they need, the duration of a garbage
collection, the cost to start and stop one more timer, and the cost to stop a
random timer and start another (churn). Then does the same with time.AfterFunc.

Skips numbers of timers that need more memory than the machine has available.
100 million timers need about 4 GiB, and 18 GiB with time.AfterFunc.`,
		Example: `  tickless scale                          1M, 10M and 100M; takes some minutes
  tickless scale --counts 1M,2M,5M        other numbers
  tickless scale --time=false             without time.AfterFunc
  tickless scale --json > result.json     the figures as JSON`,
		Args: cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return cli.UsageError{Err: err}
			}
			if f.childImplName != "" {
				return runChild(cmd, f.childImplName, f.counts[0])
			}
			return measureAll(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&f.counts, "counts", "numbers of pending timers, such as 10k or 1M")
	flags.BoolVar(&f.withStdlib, "time", true, "compare with time.AfterFunc")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON instead of tables")
	flags.StringVar(&f.childImplName, "child", "", "")
	_ = flags.MarkHidden("child")
	return cmd
}
