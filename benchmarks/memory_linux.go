package benchmarks

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// processMemory returns the process's present and peak memory in bytes. ok is false if
// the system does not report them.
func processMemory() (now, peak int64, ok bool) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	fieldsFound := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		for key, v := range map[string]*int64{"VmRSS:": &now, "VmHWM:": &peak} {
			if value, ok := strings.CutPrefix(lines.Text(), key); ok {
				n, _ := fmt.Sscanf(value, "%d kB", v)
				fieldsFound += n
				*v *= 1024
			}
		}
	}
	return now, peak, fieldsFound == 2
}
