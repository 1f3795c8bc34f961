// Package machine says where something was measured, and of what.
package machine

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// String returns all of it, as one line of a page.
func String() string {
	return fmt.Sprintf("commit %s, %s, %s/%s, %s, %d procs, %s, %s",
		Commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, Processor(), runtime.GOMAXPROCS(0), Memory(), System())
}

// Commit returns the one that is checked out, with a + if a Go file differs from it.
func Commit() string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	commit := strings.TrimSpace(string(out))
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", ":/*.go").Run() != nil {
		commit += "+"
	}
	return commit
}

// Processor returns the name of the machine's.
func Processor() string {
	if name := field("/proc/cpuinfo", "model name"); name != "" {
		return name
	}
	return "an unknown processor"
}

// Memory returns how much the machine has.
func Memory() string {
	kib, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	if err != nil {
		return "unknown memory"
	}
	return fmt.Sprintf("%.0f GiB", kib/(1<<20))
}

// System returns the kernel's name and version.
func System() string {
	out, err := exec.Command("uname", "-sr").Output()
	if err != nil {
		return runtime.GOOS
	}
	return strings.TrimSpace(string(out))
}

// field returns the first value behind a name and a colon in a file of such lines.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
