package durable

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// To carry out a repeated command only once, a store needs to know its sender and its
// number: see [store.Stamp]. A sender has one command at a time under way in a shard.
// So a Client uses many senders, called lanes: each call takes a free one. After a
// command without an answer its lane is not used again, so that the command can be
// repeated until the store forgets it.

// A lane is a sender. One call at a time owns it.
type lane struct {
	sender string
	mu     sync.Mutex // for the shards of one call
	last   int64
}

// next returns the stamp of the lane's next command.
func (l *lane) next() store.Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return store.Stamp{Sender: l.sender, Number: l.last}
}

// lanes are the free lanes of a Client.
type lanes struct {
	client string
	mu     sync.Mutex
	free   []*lane
	made   int64
}

func (s *lanes) take() *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		l := s.free[n-1]
		s.free = s.free[:n-1]
		return l
	}
	s.made++
	return &lane{sender: s.client + "." + strconv.FormatInt(s.made, 36)}
}

func (s *lanes) put(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, l)
}

// newName returns a unique sender name for a Client or a run of a Worker.
func newName() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
}
