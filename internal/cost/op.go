package cost

import (
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"runtime/coverage"
)

// A Growth is how the cost of an operation may grow with n.
type Growth struct {
	name   string
	of     func(n float64) float64
	atMost bool
}

var (
	Constant     = Growth{name: "O(1)", of: func(float64) float64 { return 1 }}
	Logarithmic  = Growth{name: "O(log n)", of: math.Log2}
	Linear       = Growth{name: "O(n)", of: func(n float64) float64 { return n }}
	Linearithmic = Growth{name: "O(n log n)", of: func(n float64) float64 { return n * math.Log2(n) }}
	// LinearAtMost may also be much less.
	LinearAtMost = Growth{name: "at most O(n)", of: Linear.of, atMost: true}
)

// An Op is an operation that is measured.
type Op struct {
	Name   string
	Growth Growth
	// Prepare makes something of size n, and returns the operation. This is executed
	// Times times, with 0, 1, 2 and so on; its cost is the average.
	Prepare func(n int) func(i int)
	Times   int // 256 if it is 0
	// From and To are the two sizes, 256 and 32,768 if they are 0.
	From, To int
}

func (op *Op) times() int {
	if op.Times == 0 {
		return 256
	}
	return op.Times
}

func (op *Op) sizes() [2]int {
	if op.From == 0 {
		return [2]int{1 << 8, 1 << 15}
	}
	return [2]int{op.From, op.To}
}

// Main is what a program does that [Measure] builds: it executes each operation on both
// sizes, and leaves the counters of each in a folder of its own.
func Main(ops []Op) {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("this program is for the test beside it")
	}
	for i := range ops {
		for j := range ops[i].sizes() {
			if err := execute(&ops[i], j, folder(os.Args[1], i, j)); err != nil {
				log.Fatalf("%s: %v", ops[i].Name, err)
			}
		}
	}
}

func folder(dir string, op, size int) string { return filepath.Join(dir, fmt.Sprint(op, "-", size)) }

func execute(op *Op, size int, dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	f := op.Prepare(op.sizes()[size])
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	for i := range op.times() {
		f(i)
	}
	if err := coverage.WriteCountersDir(dir); err != nil {
		return err
	}
	return coverage.WriteMetaDir(dir)
}
