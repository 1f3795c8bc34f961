// Command cron prints a line at the times of cron expressions.
//
//	go run ./cron '*/2 * * * * *' '@every 3s'
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
)

func main() {
	cronExprs := os.Args[1:]
	if len(cronExprs) == 0 {
		cronExprs = []string{"*/2 * * * * *"}
	}
	s := timer.New()
	for _, spec := range cronExprs {
		sched, err := jobs.ParseCron(spec, "Local")
		if err != nil {
			fmt.Fprintln(os.Stderr, "cron:", err)
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
