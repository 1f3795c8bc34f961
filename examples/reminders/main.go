// Command reminders prints reminders when they are due. The reminders are tasks in a
// file, so they survive a crash of the program.
//
//	go run ./reminders -in 20s 'tea is ready'    # then kill -9 it
//	go run ./reminders                           # prints it, late if need be
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
	file := flag.String("file", "reminders.db", "where the reminders are kept")
	in := flag.Duration("in", 10*time.Second, "when to remind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *file, *in, flag.Arg(0)); err != nil {
		log.Fatal("reminders: ", err)
	}
}

// run schedules a reminder if text is not empty, and prints due reminders until ctx
// ends.
func run(ctx context.Context, file string, in time.Duration, text string) (err error) {
	st, err := sqlitestore.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	client := durable.New(st)

	if text != "" {
		// A key identifies one task: scheduling the same reminder again moves it.
		task := durable.Task{Key: text, Handler: "remind", Body: []byte(text)}
		if _, err := client.Schedule(ctx, task, durable.After(in)); err != nil {
			return err
		}
		fmt.Println("scheduled:", text) // and on disk: from here on no crash loses it
	}

	worker := durable.NewWorker(client)
	worker.Handle("remind", func(_ context.Context, d durable.Delivery) error {
		_, err := fmt.Printf("reminder: %s\n", d.Body)
		return err // another attempt follows, unless it is nil
	})
	return worker.Run(ctx)
}
