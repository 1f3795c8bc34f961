package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// place says where something was measured, and of what, as one line of a page.
func place() string {
	return fmt.Sprintf("commit %s, %s, %s/%s, %s, %d procs, %s, %s",
		commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, processor(), runtime.GOMAXPROCS(0), memory(), system())
}

// commit returns the one that is checked out, with a + if a Go file differs from it.
func commit() string {
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

// processor returns the name of the machine's.
func processor() string {
	if name := field("/proc/cpuinfo", "model name"); name != "" {
		return name
	}
	return "an unknown processor"
}

// memory returns how much the machine has.
func memory() string {
	kib, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	if err != nil {
		return "unknown memory"
	}
	return fmt.Sprintf("%.0f GiB", kib/(1<<20))
}

// system returns the kernel's name and version.
func system() string {
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
