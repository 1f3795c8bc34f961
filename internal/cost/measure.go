package cost

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
)

// A Cost is what an operation costs, in statements.
type Cost struct {
	*Op
	Small, Large float64
}

// Err reports a cost that grows faster than the Op says, by more than half. One that is
// said to be O(n), or more, may not grow less than an eighth as fast either: then the
// counters count nothing, or the operation does not do what it should.
func (c Cost) Err() error {
	sizes := c.sizes()
	ratio := c.Growth.of(float64(sizes[1])) / c.Growth.of(float64(sizes[0]))
	grown := c.Large / c.Small
	linear := float64(sizes[1]) / float64(sizes[0])
	switch {
	case c.Small < 1:
		return fmt.Errorf("%v: nothing is counted", c)
	case grown > 1.5*ratio, ratio >= linear && !c.Growth.atMost && grown < ratio/8:
		return fmt.Errorf("%v: it grows by %.1f", c, grown)
	}
	return nil
}

func (c Cost) String() string {
	sizes := c.sizes()
	return fmt.Sprintf("%s, %s: %.1f statements at %d, %.1f at %d", c.Name, c.Growth.name, c.Small, sizes[0], c.Large, sizes[1])
}

// Measure builds the program in the current folder, which calls Main with these ops, so
// that it counts the statements of some packages, as in go build -coverpkg, and runs it.
// What it writes goes to dir.
func Measure(dir string, ops []Op, packages string) ([]Cost, error) {
	program, covdata := filepath.Join(dir, "program"), filepath.Join(dir, "covdata")
	rest := filepath.Join(dir, "rest")
	if err := os.Mkdir(rest, 0o777); err != nil {
		return nil, err
	}
	// Atomic counters can be cleared, and goroutines may share them.
	for _, cmd := range []*exec.Cmd{
		exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+packages, "-o", program, "."),
		exec.Command(program, dir),
		exec.Command("go", "build", "-o", covdata, "cmd/covdata"), // which go tool would build each time
	} {
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+rest)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	costs := make([]Cost, len(ops))
	errs := make([]error, len(ops))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range ops {
		room <- struct{}{}
		all.Go(func() {
			costs[i], errs[i] = read(covdata, dir, i, &ops[i])
			<-room
		})
	}
	all.Wait()
	return costs, errors.Join(errs...)
}

// read returns what the counters of an operation say.
func read(covdata, dir string, i int, op *Op) (Cost, error) {
	small, err1 := statements(covdata, folder(dir, i, 0))
	large, err2 := statements(covdata, folder(dir, i, 1))
	times := float64(op.times())
	return Cost{op, small / times, large / times}, errors.Join(err1, err2)
}

// block is a line of a profile: a block of code, its statements, and how many times it
// was executed.
var block = regexp.MustCompile(`(?m) (\d+) (\d+)$`)

// statements returns how many the counters in a folder have counted.
func statements(covdata, dir string) (n float64, err error) {
	profile := dir + ".txt"
	out, err := exec.Command(covdata, "textfmt", "-i="+dir, "-o="+profile).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return 0, err
	}
	for _, m := range block.FindAllSubmatch(text, -1) {
		in, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return 0, err
		}
		times, err := strconv.Atoi(string(m[2]))
		if err != nil {
			return 0, err
		}
		n += float64(in) * float64(times)
	}
	return n, nil
}
