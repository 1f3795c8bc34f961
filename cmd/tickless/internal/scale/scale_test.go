package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, clitest.UnderRoot(NewCommand)) }

func TestScale_CalledWrongly(t *testing.T) {
	clitest.CheckWrongCalls(t, "scale", []clitest.WrongCall{
		{Args: []string{"--bogus"}, WantError: "--bogus"},
		{Args: []string{"1M"}, WantError: `"1M"`},
		{Args: []string{"--counts", "0"}, WantError: "from 1 to"},
		{Args: []string{"--counts", "-5"}, WantError: "from 1 to"},
		{Args: []string{"--counts", "1001M"}, WantError: "1000000000"},
		{Args: []string{"--counts", "1k,,2k"}, WantError: "whole number"},
		{Args: []string{"--counts", "many"}, WantError: "whole number"},
		{Args: []string{"--counts", "2k,1k"}, WantError: "ascending order"},
		{Args: []string{"--time=maybe"}, WantError: "maybe"},
	})
}

func TestScale_Help(t *testing.T) {
	help := clitest.CheckHelp(t, "scale", "--counts", "--json", "1M,10M,100M", "memory")
	if strings.Contains(help, "--child") {
		t.Error("the help shows a flag that is not for use by hand")
	}
}

func TestScale_JSON(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector: make test runs it")
	}
	stdout, stderr, code := clitest.Run("scale", "--counts", "1k,20k", "--json")
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if r.Interrupted || len(r.Implementations) != 2 || r.Go != runtime.Version() {
		t.Fatalf("read %+v", r)
	}
	for _, side := range r.Implementations {
		if len(side.Runs) != 2 {
			t.Fatalf("%s ran %d times", side.Name, len(side.Runs))
		}
		for i, n := range []int{1_000, 20_000} {
			run := side.Runs[i]
			if run.Count != n || run.InsertTime <= 0 || run.FullGCTime <= 0 || run.EmptyStartStopNs <= 0 || run.StartStopNs <= 0 || run.ChurnNs <= 0 {
				t.Errorf("%s: %+v", side.Name, run)
			}
		}
		if a := side.Runs[1].HeapBytes / 20_000; a < 16 || a > 300 {
			t.Errorf("%s: %d bytes a timer", side.Name, a)
		}
	}
}

func TestScale_Table(t *testing.T) {
	stdout, stderr, code := clitest.Run("scale", "--counts", "1k", "--time=false")
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{"Pending timers: tickless", "1,000", "live heap", "full GC", "churn", runtime.Version()} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "time.AfterFunc") {
		t.Error("time.AfterFunc was measured despite --time=false")
	}
}

func TestScale_TooLittleMemory(t *testing.T) {
	if _, ok := figures.AvailableMemory(); !ok {
		t.Skip("the system does not tell how much memory there is")
	}
	var stderr bytes.Buffer
	greedy := implementation{name: "greedy", bytesPerTimer: 1 << 50}
	r, err := measureInChild(context.Background(), &stderr, greedy, 1000)
	if err != nil || r != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if line := stderr.String(); strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "skipped: greedy needs about") {
		t.Errorf("standard error has %q", line)
	}
}

func TestScale_Interrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to send to another process")
	}
	cmd := clitest.ProgramCmd("scale", "--counts", "1k,20M", "--time=false", "--json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The program has begun with the larger number when it prints its second line.
	read := make([]byte, 4096)
	printed := ""
	for strings.Count(printed, "\n") < 2 {
		n, err := stderr.Read(read)
		if printed += string(read[:n]); err != nil {
			t.Fatalf("%v after %q", err, printed)
		}
	}
	if strings.Contains(printed, "skipped: ") {
		_ = cmd.Wait()
		t.Skip("the machine has too little memory: " + printed)
	}
	time.Sleep(50 * time.Millisecond)
	_ = cmd.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, stderr)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, cli.ExitInterrupted)
	}
	var r report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout.String())
	}
	if !r.Interrupted || len(r.Implementations) != 1 || len(r.Implementations[0].Runs) != 1 {
		t.Errorf("the report is %+v", r)
	}
}

// If a measurement fails, the program says so, and the report has the results of the others.
func TestScale_FailureKeepsTheOthers(t *testing.T) {
	t.Setenv(clitest.AsProgramEnv, "1")
	before := implementations
	defer func() { implementations = before }()
	implementations = []implementation{before[0], {name: "greedy"}} // an implementation that the child does not know
	cmd := NewCommand()
	cmd.SetArgs([]string{"--counts", "1k,2k", "--json"})
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var code cli.ExitCode
	if err := cmd.ExecuteContext(t.Context()); !errors.As(err, &code) || code != cli.ExitFailed {
		t.Errorf("the error is %v", err)
	}
	var r report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout.String())
	}
	if len(r.Implementations) != 2 || len(r.Implementations[0].Runs) != 2 || r.Implementations[0].Runs[1].InsertTime <= 0 || len(r.Implementations[1].Runs) != 0 {
		t.Fatalf("not all results are there: %s", stdout.String())
	}
	if n := strings.Count(stderr.String(), `no such implementation: "greedy"`); n != 2 || !strings.Contains(stderr.String(), "tickless: greedy, 1,000 timers: ") {
		t.Errorf("standard error does not say what failed: %s", stderr.String())
	}
}
