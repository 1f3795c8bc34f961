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
	name              string
	mu                sync.Mutex // one call may send to several shards at the same time
	lastCommandNumber int64      // of the latest command
}

func (s *sender) nextStamp() store.Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastCommandNumber++
	return store.Stamp{Sender: s.name, Number: s.lastCommandNumber}
}

// A senderPool has the free senders of a Client.
type senderPool struct {
	clientName   string     // prefix of the senders' names
	mu           sync.Mutex // guards freeSenders and createdCount
	freeSenders  []*sender
	createdCount int64 // how many senders were created
}

func (s *senderPool) takeSender() *sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.freeSenders); n > 0 {
		freeSender := s.freeSenders[n-1]
		s.freeSenders = s.freeSenders[:n-1]
		return freeSender
	}
	s.createdCount++
	return &sender{name: s.clientName + "." + strconv.FormatInt(s.createdCount, 36)}
}

func (s *senderPool) putSender(freed *sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeSenders = append(s.freeSenders, freed)
}

// newUniqueName returns a unique name for a Client, or for a Run of a Worker. Their
// senders' names begin with it.
func newUniqueName() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
}
