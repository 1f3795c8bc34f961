package callbacks

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// report is what --json prints.
type report struct {
	cli.Machine
	Config     config  `json:"config"`
	DurationMS int64   `json:"duration_ms"`
	LeaseMS    int64   `json:"lease_ms"`
	Result     *result `json:"result"`
}

// MarshalJSON writes durations in milliseconds, and what cannot be told as null.
func (r *result) MarshalJSON() ([]byte, error) {
	var lost, pending *int64
	if r.Interrupted {
		pending = &r.Missing
	} else {
		lost = &r.Missing
	}
	return json.Marshal(struct {
		Server       string  `json:"server"`
		Interrupted  bool    `json:"interrupted"`
		Scheduled    int64   `json:"scheduled"`
		SchedulingMS float64 `json:"scheduling_ms"`
		Delivered    int64   `json:"delivered"`
		Duplicated   int64   `json:"duplicated"`
		Lost         *int64  `json:"lost"`
		Pending      *int64  `json:"pending"`
		Early        int64   `json:"early"`
		Refused      int64   `json:"wrongly_signed"`
		P50MS        float64 `json:"late_p50_ms"`
		P99MS        float64 `json:"late_p99_ms"`
		MaxMS        float64 `json:"late_max_ms"`
		Rate         float64 `json:"deliveries_per_second"`
		Killed       int64   `json:"workers_killed"`
		TakenOver    int64   `json:"leases_taken_over"`
	}{
		r.Server, r.Interrupted, r.Scheduled, cli.InMillis(r.Scheduling), r.Delivered, r.Duplicated, lost, pending, r.Early,
		r.Refused, cli.InMillis(r.Late.P50), cli.InMillis(r.Late.P99), cli.InMillis(r.Late.Max), r.Rate, r.Killed, r.TakenOver,
	})
}

// figures are the table's rows.
func figures() [][]cli.Figure[*result] {
	late := func(name string, get func(*result) time.Duration) cli.Figure[*result] {
		return cli.Figure[*result]{Name: name, Format: cli.Millis, Value: func(r *result) (float64, bool) {
			return float64(get(r)), r.Delivered > 0
		}}
	}
	missing := func(name string, interrupted bool) cli.Figure[*result] {
		return cli.Figure[*result]{Name: name, Format: cli.Whole, Value: func(r *result) (float64, bool) {
			return float64(r.Missing), r.Interrupted == interrupted
		}}
	}
	return [][]cli.Figure[*result]{
		{
			cli.Tally("scheduled", func(r *result) int64 { return r.Scheduled }),
			cli.Tally("delivered", func(r *result) int64 { return r.Delivered }),
			cli.Tally("duplicated", func(r *result) int64 { return r.Duplicated }),
			missing("lost", false),
			missing("still pending", true),
			cli.Tally("early", func(r *result) int64 { return r.Early }),
			{Name: "wrongly signed", Format: cli.Whole, Value: func(r *result) (float64, bool) {
				return float64(r.Refused), r.Refused > 0
			}},
		},
		{
			cli.Tally("workers killed", func(r *result) int64 { return r.Killed }),
			cli.Tally("calls that it had in hand", func(r *result) int64 { return r.TakenOver }),
		},
		{
			late("late, p50", func(r *result) time.Duration { return r.Late.P50 }),
			late("late, p99", func(r *result) time.Duration { return r.Late.P99 }),
			late("late, max", func(r *result) time.Duration { return r.Late.Max }),
		},
		{
			{Name: "scheduling", Format: cli.PerSecond, Value: func(r *result) (float64, bool) {
				return float64(r.Scheduled) / max(r.Scheduling.Seconds(), 1e-9), r.Scheduled > 0
			}},
			{Name: "delivery", Format: cli.PerSecond, Value: func(r *result) (float64, bool) { return r.Rate, r.Rate > 0 }},
		},
	}
}

func printTable(w io.Writer, c config, r *result) error {
	_, err := fmt.Fprintf(w, "\n%s tasks over %v, HTTP callbacks by %d worker processes, a lease of %v\nRedis: %s\n%s\n%s",
		cli.Thousands(int64(c.Tasks)), c.Duration, c.Workers, c.Lease, r.Server, cli.ThisMachine(),
		cli.RenderTable([]string{"tickless"}, []*result{r}, figures(), false))
	if err == nil && r.Killed > 0 {
		_, err = fmt.Fprintf(w, "Worker %d was killed; what it had in hand came again when its lease of %v had run out.\n", r.Pid, c.Lease)
	}
	return err
}
