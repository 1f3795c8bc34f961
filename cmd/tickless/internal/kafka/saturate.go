package kafka

import (
	"context"
	"fmt"
	"io"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// How saturate looks for the highest rate: in large steps, up or down,
// until one is held and one is not, then by halving until the two are this close.
// A rate is not held if it is not held twice: machines have bad moments.
const (
	saturateStep  = 1.5
	saturateClose = 1.1
	saturateFirst = 1000
	saturateLast  = maxRate
	saturateTries = 2
)

// saturate finds the highest rate that each side holds, and returns its
// results there. A side that does not hold even the lowest that is tried has a
// result that says so.
func saturate(ctx context.Context, stderr io.Writer, c config) ([]result, error) {
	var results []result
	for _, newSide := range sides {
		var best, worst result // held, not held
		for rate := c.Rate; ctx.Err() == nil; {
			trial := c
			trial.Rate = rate
			if trial.validate() != nil {
				break // more requests than there may be
			}
			var r result
			plan := newPlan(trial)
			for range saturateTries {
				var err error
				if r, err = plan.run(ctx, newSide(), nil); err != nil {
					return nil, err
				}
				if r.held() || r.Interrupted {
					break
				}
			}
			if r.Interrupted {
				break
			}
			verdict := "falls behind"
			if r.held() {
				best, verdict = r, "holds"
			} else {
				worst = r
			}
			fmt.Fprintf(stderr, "%s: %s %s requests/s (%s reached, %s behind, answers %s late at p99)\n", r.Name, verdict,
				cli.Thousands(int64(rate)), cli.Thousands(int64(r.Achieved)), cli.Millis(float64(r.Behind)), cli.Millis(float64(r.CompletedLate.P99)))
			lo, hi := best.Config.Rate, worst.Config.Rate
			switch {
			case lo == 0 && rate > saturateFirst:
				rate = max(int(float64(rate)/saturateStep), saturateFirst)
				continue
			case lo == 0:
				results = append(results, worst)
			case hi == 0 && rate < saturateLast:
				rate = min(int(float64(rate)*saturateStep), saturateLast)
				continue
			case hi != 0 && float64(hi) > float64(lo)*saturateClose:
				rate = (lo + hi) / 2
				continue
			}
			break
		}
		if best.Name != "" {
			results = append(results, best)
		}
	}
	return results, nil
}
