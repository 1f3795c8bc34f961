package durable

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A store carries each command out once, however often it comes, if it knows who sends
// it and which of the sender's commands it is: see [store.Stamp]. A sender has one
// command at a time under way in a shard. So a Client is many senders, its lanes: each
// call takes one that is free. The lane of a command without an answer is not used
// again: the command can be asked for until the store forgets it.

// A lane is a sender. Whoever has taken it has it alone.
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

// lanes are the lanes of a Client that are free.
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

// newName returns a name that no other sender has had, for a Client or a run of a
// Worker.
func newName() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
}
