package durable

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A store recognizes a repeated command by its sender and number. It remembers only the
// latest command of each sender: see [store.Stamp]. So each call uses a sender of its
// own until the store has answered.

// A sender numbers the commands that it sends. One call at a time owns it.
type sender struct {
	name       string
	mu         sync.Mutex // one call may send to several shards at the same time
	lastNumber int64      // of the latest command
}

func (s *sender) nextStamp() store.Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber++
	return store.Stamp{Sender: s.name, Number: s.lastNumber}
}

// senders are the free senders of a Client.
type senders struct {
	clientName string // prefix of the senders' names
	mu         sync.Mutex
	free       []*sender
	created    int64 // how many senders were created
}

func (s *senders) take() *sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		l := s.free[n-1]
		s.free = s.free[:n-1]
		return l
	}
	s.created++
	return &sender{name: s.clientName + "." + strconv.FormatInt(s.created, 36)}
}

func (s *senders) put(l *sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, l)
}

// newName returns a unique sender name for a Client or a run of a Worker.
func newName() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
}
