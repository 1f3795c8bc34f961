// Command reminders prints reminders when they are due. They are tasks in a file, and
// survive a crash of the program.
//
//	go run ./reminders -in 20s 'tea is ready'    # kill it with kill -9
//	go run ./reminders                           # prints the reminder, perhaps late
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
)

func main() {
	file := flag.String("file", "reminders.db", "file for the reminders")
	in := flag.Duration("in", 10*time.Second, "how long until the reminder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *file, *in, flag.Arg(0)); err != nil {
		log.Fatal("reminders: ", err)
	}
}

// run schedules a reminder, unless text is empty. Then it prints due reminders until ctx
// ends.
func run(ctx context.Context, file string, in time.Duration, text string) (err error) {
	st, err := sqlitestore.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	client := durable.New(st)

	if text != "" {
		// The key is the text, so scheduling the same text again changes its time.
		task := durable.Task{Key: text, Handler: "remind", Body: []byte(text)}
		if _, err := client.Schedule(ctx, task, durable.After(in)); err != nil {
			return err
		}
		fmt.Println("scheduled:", text) // it is on disk: from now on no crash loses it
	}

	worker := durable.NewWorker(client)
	worker.Handle("remind", func(_ context.Context, d durable.Delivery) error {
		_, err := fmt.Printf("reminder: %s\n", d.Body)
		return err // if it is not nil, another attempt follows
	})
	return worker.Run(ctx)
}
