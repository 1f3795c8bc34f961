package figures

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// AvailableMemory returns how many bytes programs can use without swapping. ok is false
// if this is unknown. The limit of a container is ignored.
func AvailableMemory() (bytes int64, ok bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "MemAvailable:"); found {
			var kib int64
			n, _ := fmt.Sscanf(rest, "%d kB", &kib)
			return kib << 10, n == 1
		}
	}
	return 0, false
}
