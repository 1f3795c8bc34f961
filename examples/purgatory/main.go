// Command purgatory is a small message log over HTTP with long polling. A fetch waits for
// a message for up to ten seconds. After that it returns an empty list.
//
//	go run ./purgatory
//	curl 'localhost:8080/orders?from=0' &       # waits
//	curl -d 'one book' localhost:8080/orders    # answers it
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

func main() {
	log.Fatal(http.ListenAndServe("localhost:8080", newBroker(timer.New(), 10*time.Second)))
}

type broker struct {
	maxWait        time.Duration                // for a fetch
	waitingFetches *purgatory.Purgatory[string] // fetches, by their topic

	mu       sync.Mutex
	messages map[string][]string // by topic
}

func newBroker(s *timer.Scheduler, maxWait time.Duration) http.Handler {
	b := &broker{maxWait: maxWait, waitingFetches: purgatory.New[string](s), messages: map[string][]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{topic}", b.produce)
	mux.HandleFunc("GET /{topic}", b.fetch)
	return mux
}

func (b *broker) produce(w http.ResponseWriter, r *http.Request) {
	message, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	topic := r.PathValue("topic")
	b.mu.Lock()
	b.messages[topic] = append(b.messages[topic], string(message))
	b.mu.Unlock() // before the check, which takes the same lock in TryComplete
	b.waitingFetches.CheckAndComplete(topic)
}

// readMessages returns the messages of a topic, beginning with message number from.
func (b *broker) readMessages(topic string, from int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.messages[topic][min(from, len(b.messages[topic])):]...)
}

// A fetchOperation is a request that waits until its topic has a message to read.
type fetchOperation struct {
	purgatory.Delayed[string] // makes it an Operation
	read                      func() []string
	answer                    chan []string // has a buffer for one answer
}

func (f *fetchOperation) TryComplete() bool { return len(f.read()) > 0 }
func (f *fetchOperation) OnComplete()       { f.answer <- f.read() }
func (f *fetchOperation) OnExpiration()     {} // after OnComplete, which has answered already

func (b *broker) fetch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.ParseUint(r.FormValue("from"), 10, 31)
	if err != nil {
		http.Error(w, "from must be the number of a message", http.StatusBadRequest)
		return
	}
	topic := r.PathValue("topic")
	f := &fetchOperation{read: func() []string { return b.readMessages(topic, int(from)) }, answer: make(chan []string, 1)}
	if _, err := b.waitingFetches.CompleteOrWatch(f, b.maxWait, topic); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	select {
	case messages := <-f.answer:
		json.NewEncoder(w).Encode(messages)
	case <-r.Context().Done():
		f.ForceComplete() // the client has gone: stop waiting
	}
}
