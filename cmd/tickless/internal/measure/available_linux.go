package measure

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AvailableMemory returns how much memory the system says can be had without
// swapping, and what its control group leaves of that; ok is false where it does not tell.
func AvailableMemory() (bytes int64, ok bool) {
	bytes, ok = systemMemory()
	if left, limited := groupMemory("/proc/self/cgroup", "/sys/fs/cgroup"); limited && (!ok || left < bytes) {
		return left, true
	}
	return bytes, ok
}

func systemMemory() (bytes int64, ok bool) {
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

// groupMemory returns what the limits of a process' control group, and of those that it is
// in, leave; limited is false if there are none. Only version 2 of control groups counts.
func groupMemory(self, root string) (bytes int64, limited bool) {
	text, err := os.ReadFile(self)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		group, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found {
			continue
		}
		for dir := filepath.Clean("/" + group); ; dir = filepath.Dir(dir) {
			if left, ok := leftOf(filepath.Join(root, dir)); ok && (!limited || left < bytes) {
				bytes, limited = left, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return bytes, limited
}

// leftOf returns what a control group's limit leaves. Files that nobody has used of late
// are memory that can be had, as they are for the system.
func leftOf(dir string) (bytes int64, ok bool) {
	limit, ok := number(filepath.Join(dir, "memory.max"))
	used, ok2 := number(filepath.Join(dir, "memory.current"))
	if !ok || !ok2 {
		return 0, false
	}
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
	for line := range strings.Lines(string(stat)) {
		var inactive int64
		if n, _ := fmt.Sscanf(line, "inactive_file %d", &inactive); n == 1 {
			used -= inactive
		}
	}
	return max(0, limit-max(0, used)), true
}

// number reads a file of a number; ok is false if it has another word, such as max.
func number(file string) (n int64, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
