package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// headlineFiles returns rates.txt and busy.txt with the same two figures in each row.
func headlineFiles(cpu string, std, ours int) map[string]string {
	files := map[string]string{}
	for _, h := range processorRows {
		if files[h.mode] == "" {
			files[h.mode] = "commit: 0123456789ab\nprocs: 2\nmode: " + h.mode + "\ncpu: " + cpu + "\n"
		}
		line := func(impl string, v int) {
			files[h.mode] += fmt.Sprintf("Benchmark%s/impl=%s/%s-2 \t 1 \t %d %s\n", h.key.workload, impl, h.key.params, v, h.key.unit)
		}
		line("time", std)
		line("tickless", ours)
	}
	return files
}

func TestReport_Processors(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, other), 0o755); err != nil {
		t.Fatal(err)
	}
	begin, end := markers(processorsMode)
	ratesBegin, ratesEnd := markers("rates")
	readme := write(t, dir, "README.md", ratesBegin+ratesEnd+"\n"+begin+"\nold\n"+end+"\nafter\n")
	page := write(t, dir, "FRONT.md", frontBegin+frontEnd)
	run := func(mode string) (string, error) {
		t.Helper()
		err := report(mode, dir, readme, page, "svg")
		text, _ := os.ReadFile(readme)
		_, table, _ := strings.Cut(string(text), begin)
		return table, err
	}
	for mode, text := range headlineFiles("Here", 200, 50) {
		write(t, dir, mode+".txt", text)
	}
	// One processor is compared with none.
	if got, err := run("rates"); err != nil || !strings.HasPrefix(got, "\nold\n") {
		t.Fatalf("%v, with one processor:\n%s", err, got)
	}
	there := headlineFiles("There", 50, 200)
	write(t, dir, filepath.Join(other, "rates.txt"), there["rates"])
	got, err := run(processorsMode)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, h := range processorRows {
		if h.mode == "rates" {
			rows++
		}
	}
	if n := strings.Count(got, "\n| "); n != 1+rows || strings.Contains(got, "old") || strings.Contains(got, "callbacks that compute") {
		t.Errorf("%d rows, want %d without those of busy:\n%s", n, rows, got)
	}
	write(t, dir, filepath.Join(other, "busy.txt"), there["busy"])
	if got, err = run("rates"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- A: mode rates, commit 0123456789ab, Here, 2 procs; mode busy, commit 0123456789ab, Here, 2 procs.\n- B: mode rates, commit 0123456789ab, There",
		"| lower is better | time, A | tickless, A | ratio, A | means, A | time, B | tickless, B | ratio, B | means, B |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
		"| start and stop a timer, 1M others pending, 1 proc (ns) | 200 | **50** | 0.25 | | **50** | 200 | 4.00 | |\n",
		end + "\nafter\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the README lacks %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n| "); n != 1+len(processorRows) {
		t.Errorf("%d rows:\n%s", n, got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, other, "rates.md")); err != nil || !strings.Contains(string(text), "| start and stop, 1M pending, 1 proc (ns) | **50** | 200 | 4.00 | |\n") {
		t.Errorf("%v, rates.md of the other processor:\n%s", err, text)
	}
	write(t, dir, filepath.Join(other, "rates.txt"), strings.ReplaceAll(there["rates"], "Reset", "Other"))
	if _, err := run("rates"); err == nil {
		t.Error("a headline without figures was accepted")
	}
}
