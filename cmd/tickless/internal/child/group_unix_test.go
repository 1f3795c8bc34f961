//go:build unix

package child

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Called by the tests, this program is a child, or one that starts many.
const as = "TICKLESS_TEST_CHILD_AS"

func TestMain(m *testing.M) {
	switch {
	case os.Args[len(os.Args)-1] == "--child":
		var order string
		if err := ReadOrder(os.Stdin, os.Stdout, &order); err != nil {
			panic(err)
		}
		fmt.Println(order)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case os.Getenv(as) != "":
		startMany()
	default:
		os.Exit(m.Run())
	}
}

// startMany starts children while its group gets one signal after another.
func startMany() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	go func() {
		for {
			_ = syscall.Kill(0, syscall.SIGHUP)
			time.Sleep(rand.N(20 * time.Millisecond))
		}
	}()
	for i := range 300 {
		c, err := Start(context.Background(), "x", "here")
		if err != nil {
			fmt.Printf("child %d: %v\n", i, err)
			os.Exit(1)
		}
		said := make([]byte, len("here\n"))
		if _, err := io.ReadFull(c.Stdout, said); err != nil || string(said) != "here\n" {
			fmt.Printf("child %d: it has said %q: %v, and ended: %v\n", i, said, err, c.Cmd.Wait())
			os.Exit(1)
		}
		_ = c.Stdin.Close()
		if err := c.Cmd.Wait(); err != nil {
			fmt.Printf("child %d: %v\n", i, err)
			os.Exit(1)
		}
	}
	fmt.Println("all of them")
}

// A signal to the group of the process that starts a child reaches no child, not even one
// that has yet to get its own group.
func TestStart_SignalToTheGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("three hundred processes, one after another")
	}
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("the tests were started with the signal ignored, as by nohup")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), as+"=many")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "all of them\n") {
		t.Errorf("%v: %s", err, out)
	}
}
