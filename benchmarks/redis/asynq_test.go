package benchmarks

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

type asynqImpl struct {
	opt    asynq.RedisClientOpt
	client *asynq.Client
	config asynq.Config
	uuid   bool // tasks get ids from asynq, of 36 bytes, instead of their keys
}

func newAsynq(s *server) impl {
	opt := asynq.RedisClientOpt{Addr: s.addr, PoolSize: 64}
	config := asynq.Config{Concurrency: 1000, LogLevel: asynq.FatalLevel}
	return &asynqImpl{opt: opt, client: asynq.NewClient(opt), config: config}
}

func newAsynqTuned(s *server) impl {
	x := newAsynq(s).(*asynqImpl)
	x.config.DelayedTaskCheckInterval = 100 * time.Millisecond
	x.config.TaskCheckInterval = 50 * time.Millisecond
	return x
}

func (x *asynqImpl) schedule(b *testing.B, ts []task, goroutines int, _ bool) {
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for _, t := range ts[g*len(ts)/goroutines : (g+1)*len(ts)/goroutines] {
				// The id is the task's key, so that a caller could delete the task by it.
				opts := []asynq.Option{asynq.ProcessAt(t.due), asynq.TaskID(t.key)}
				if x.uuid {
					opts = opts[:1]
				}
				_, err := x.client.Enqueue(asynq.NewTask("bench", t.body), opts...)
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (x *asynqImpl) work(b *testing.B, handle func([]byte)) func() {
	s := asynq.NewServer(x.opt, x.config)
	err := s.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	}))
	if err != nil {
		b.Fatal(err)
	}
	return s.Shutdown
}

func (x *asynqImpl) remaining(b *testing.B) int {
	i := asynq.NewInspector(x.opt)
	defer i.Close()
	q, err := i.GetQueueInfo("default")
	if err != nil {
		b.Fatal(err)
	}
	return q.Pending + q.Active + q.Scheduled + q.Retry + q.Archived
}

func (x *asynqImpl) batches() bool { return false }
func (x *asynqImpl) close()        { x.client.Close() }
