package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// redisReport is what --json prints.
type redisReport struct {
	machine
	Config     redisConfig  `json:"config"`
	DurationMS int64        `json:"duration_ms"`
	LeaseMS    int64        `json:"lease_ms"`
	Result     *redisResult `json:"result"`
}

// MarshalJSON writes durations in milliseconds, and what cannot be told as null.
func (r *redisResult) MarshalJSON() ([]byte, error) {
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
		r.Server, r.Interrupted, r.Scheduled, inMillis(r.Scheduling), r.Delivered, r.Duplicated, lost, pending, r.Early,
		r.Refused, inMillis(r.Late.P50), inMillis(r.Late.P99), inMillis(r.Late.Max), r.Rate, r.Killed, r.TakenOver,
	})
}

// redisFigures are the table's rows.
func redisFigures() [][]figure[*redisResult] {
	late := func(name string, get func(*redisResult) time.Duration) figure[*redisResult] {
		return figure[*redisResult]{name: name, format: millis, value: func(r *redisResult) (float64, bool) {
			return float64(get(r)), r.Delivered > 0
		}}
	}
	missing := func(name string, interrupted bool) figure[*redisResult] {
		return figure[*redisResult]{name: name, format: whole, value: func(r *redisResult) (float64, bool) {
			return float64(r.Missing), r.Interrupted == interrupted
		}}
	}
	perSecond := func(v float64) string { return whole(v) + "/s" }
	return [][]figure[*redisResult]{
		{
			tally("scheduled", func(r *redisResult) int64 { return r.Scheduled }),
			tally("delivered", func(r *redisResult) int64 { return r.Delivered }),
			tally("duplicated", func(r *redisResult) int64 { return r.Duplicated }),
			missing("lost", false),
			missing("still pending", true),
			tally("early", func(r *redisResult) int64 { return r.Early }),
			{name: "wrongly signed", format: whole, value: func(r *redisResult) (float64, bool) {
				return float64(r.Refused), r.Refused > 0
			}},
		},
		{
			tally("workers killed", func(r *redisResult) int64 { return r.Killed }),
			tally("calls that it had in hand", func(r *redisResult) int64 { return r.TakenOver }),
		},
		{
			late("late, p50", func(r *redisResult) time.Duration { return r.Late.P50 }),
			late("late, p99", func(r *redisResult) time.Duration { return r.Late.P99 }),
			late("late, max", func(r *redisResult) time.Duration { return r.Late.Max }),
		},
		{
			{name: "scheduling", format: perSecond, value: func(r *redisResult) (float64, bool) {
				return float64(r.Scheduled) / max(r.Scheduling.Seconds(), 1e-9), r.Scheduled > 0
			}},
			{name: "delivery", format: perSecond, value: func(r *redisResult) (float64, bool) { return r.Rate, r.Rate > 0 }},
		},
	}
}

func printRedisTable(w io.Writer, c redisConfig, r *redisResult) error {
	_, err := fmt.Fprintf(w, "\n%s tasks over %v, HTTP callbacks by %d worker processes, a lease of %v\nRedis: %s\n%s\n%s",
		thousands(int64(c.Tasks)), c.Duration, c.Workers, c.Lease, r.Server, thisMachine(),
		renderTable([]string{"tickless"}, []*redisResult{r}, redisFigures(), false))
	if err == nil && r.Killed > 0 {
		_, err = fmt.Fprintf(w, "Worker %d was killed; what it had in hand came again when its lease of %v had run out.\n", r.Pid, c.Lease)
	}
	return err
}
