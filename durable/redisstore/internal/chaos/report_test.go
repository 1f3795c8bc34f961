//go:build unix

package chaos

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// long skips the test unless TICKLESS_CHAOS is "long".
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("TICKLESS_CHAOS") != "long" {
		t.Skip("this test takes long: make chaos runs it")
	}
}

// numbers are the results of a trial.
type numbers struct {
	acknowledged, lost, duplicates, early int
	crashed                               int // leases that expired
	dead, repaired                        int
	late, worst                           time.Duration // median and maximum
}

func (n numbers) String() string {
	return fmt.Sprintf("%d acknowledged, %d lost, %d duplicates, %d early, %d leases ran out, %d dead letters, %d repairs needed, late %s, at most %s",
		n.acknowledged, n.lost, n.duplicates, n.early, n.crashed, n.dead, n.repaired, short(n.late), short(n.worst))
}

// short formats a duration in few characters.
func short(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}
