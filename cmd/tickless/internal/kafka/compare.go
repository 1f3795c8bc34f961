package kafka

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// sides are the sides that are compared. One is made when its turn
// comes and forgotten after it, so that none pays for another's memory.
var sides = []func() side{
	func() side { return new(ticklessPurgatory) },
	func() side { return new(plainPurgatory) },
}

// A report is what --json prints.
type report struct {
	cli.Machine
	Saturate    bool        `json:"saturate"`
	Interrupted bool        `json:"interrupted"`
	Cases       []caseShown `json:"cases"`
}

// A caseShown is a case and its results. With --saturate those are of
// the highest rate held.
type caseShown struct {
	Config config   `json:"config"`
	Runs   []result `json:"runs"`
}

func runAll(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	var shown []caseShown
	for _, c := range f.cases() {
		if ctx.Err() != nil {
			break
		}
		var results []result
		var err error
		if f.saturate {
			results, err = saturate(ctx, stderr, c)
		} else {
			results, err = compare(ctx, stderr, c)
		}
		if err != nil {
			return err
		}
		shown = append(shown, caseShown{c, results})
		if !f.json {
			if err := printTable(stdout, c, results, f.saturate); err != nil {
				return err
			}
		}
	}
	if err := cli.Conclude(cmd, f.json, report{Machine: cli.ThisMachine(), Saturate: f.saturate, Interrupted: ctx.Err() != nil, Cases: shown}); err != nil {
		return err
	}
	return faults(shown)
}

// faults returns an error if the requests of package purgatory were not each completed or
// expired once, and in time.
func faults(cases []caseShown) error {
	var lost, early, wrong int64
	for _, c := range cases {
		for _, r := range c.Runs {
			if r.Name == new(ticklessPurgatory).Name() {
				lost, early, wrong = lost+r.Lost+int64(r.Waiting), early+r.Early, wrong+r.Wrong
			}
		}
	}
	return cli.Faults(cli.Fault{Name: "lost", N: lost}, cli.Fault{Name: "early", N: early}, cli.Fault{Name: "completed or expired twice", N: wrong})
}

// compare runs one load on all sides.
func compare(ctx context.Context, stderr io.Writer, c config) ([]result, error) {
	own, err := ownCPU(ctx, c)
	if err != nil {
		return nil, err
	}
	plan := newPlan(c)
	var results []result
	for i, newSide := range sides {
		if i > 0 && ctx.Err() != nil {
			break
		}
		side := newSide()
		bar := cli.NewBar(stderr, side.Name(), int64(c.count()), cli.RequestsOver(c.count(), c.Duration))
		r, err := plan.run(ctx, side, bar.Set)
		bar.Finish()
		if err != nil {
			return nil, err
		}
		r.OwnCPU = own
		results = append(results, r)
	}
	return results, nil
}

// ownCPU returns about how much CPU time the load takes by itself, on a
// purgatory that costs nothing; nil if that cannot be told. It runs a part of the
// load.
func ownCPU(ctx context.Context, c config) (*time.Duration, error) {
	scale := measure.OwnCPUScale(c.Duration)
	c.Duration = max(c.Duration/scale, time.Second/time.Duration(c.Rate))
	r, err := newPlan(c).run(ctx, new(noPurgatory), nil)
	if err != nil || r.CPU == nil || r.Interrupted {
		return nil, err
	}
	cpu := *r.CPU * scale
	return &cpu, nil
}
