package timer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/timer"
)

func ExampleScheduler_SleepContext() {
	s := timer.New()
	defer s.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(s.SleepContext(ctx, time.Hour))
	// Output:
	// context deadline exceeded
}
