package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestFront(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"rates": "go: go1.26.8\nmode: rates\n",
		"busy":  "procs: 4\nmode: busy\n",
	}
	for i, h := range headlines {
		// The first are won, the last seven lost.
		std, ours := 200, 50
		if i >= len(headlines)-7 {
			std, ours = 50, 200
		}
		for impl, v := range map[string]int{"time": std, "tickless": ours} {
			for _, more := range []int{0, 0, 100} {
				files[h.mode] += fmt.Sprintf("Benchmark%s/impl=%s/%s-2 \t 1 \t %d %s\n", h.key.workload, impl, h.key.params, v+more, h.key.unit)
			}
		}
	}
	for mode, text := range files {
		write(t, dir, mode+".txt", text)
	}
	page := write(t, dir, "README.md", "before\n"+frontBegin+"\nold\n"+frontEnd+"\nafter\n")
	if err := report("busy", dir, "", page, "svg"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n" + frontBegin, frontEnd + "\nafter\n", "go1.26.8; busy.txt on another day",
		"| start and stop a timer, 1M others pending, 1 proc (ns) | 200 | **50** | 0.25 | 0.36 | StartStop |",
		"| reset a random one of 1M to earlier, 1 proc (ns) | **50** | 200 | 4.00 | 2.80 | Reset |",
		"2 procs: the last one late by (ms) | 200 (300) | **50** (150) | 0.25 | 0.36 | BusyBurst |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), "\n| "); n != 1+len(headlines) || strings.Contains(string(text), "old") {
		t.Errorf("%d rows:\n%s", n, text)
	}
	write(t, dir, "rates.txt", "mode: rates\n"+strings.ReplaceAll(files["rates"], "Reset", "Other"))
	if err := report("busy", dir, "", page, "svg"); err == nil {
		t.Error("a headline without figures was accepted")
	}
}
