// Command cron prints a line at the times of cron expressions. Package robfig/cron parses
// them, and package jobs runs the function.
//
//	go run ./cron '*/2 * * * * *' '@every 3s'
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
)

// cronParser parses cron expressions of five fields, of six fields with seconds first, and
// names such as @daily.
var cronParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseSchedule(spec string) (jobs.Schedule, error) {
	sched, err := cronParser.Parse(spec)
	if fields, ok := sched.(*cron.SpecSchedule); ok {
		return jobs.Cron(*fields), nil
	}
	return sched, err // @every
}

func main() {
	cronExprs := os.Args[1:]
	if len(cronExprs) == 0 {
		cronExprs = []string{"*/2 * * * * *"}
	}
	s := timer.New()
	for _, spec := range cronExprs {
		sched, err := parseSchedule(spec)
		if err != nil {
			fmt.Fprintf(os.Stderr, "cron: %q: %v\n", spec, err)
			os.Exit(2)
		}
		if _, err := jobs.Calendar(s, sched, func() { fmt.Println(time.Now().Format(time.TimeOnly), spec) }); err != nil {
			fmt.Fprintln(os.Stderr, "cron:", err)
			os.Exit(1)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	<-ctx.Done()
	if err := s.Shutdown(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
	}
}
