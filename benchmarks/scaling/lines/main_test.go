package main

import (
	"strings"
	"testing"
)

// What the test prints, and a trace of one start and one stop, each twice.
const trace = `==1== Lackey
region 0x1000 128 mark: start
region 0x1080 128 mark: stop
region 0x1100 128 mark: end
region 0x2000 64 shard
region 0x3000 4096 slots
region 0x9000 4096 stack
I  00400000,3
 S 00003000,8
 L 00001000,8
 S 00001000,8
 L 00002000,8
 M 00002008,4
 S 0000303c,8
 L 00003100,8
 S 00009000,8
 L 00005000,8
 S 00001080,8
 L 00003000,8
 S 00001100,8
 S 00003000,8
 S 00001000,8
 L 00002000,8
 S 00003000,8
 S 00001080,8
 S 00003000,8
 S 00003080,8
 S 00001100,8
PASS
`

func TestCount(t *testing.T) {
	c, err := count(strings.NewReader(trace))
	if err != nil {
		t.Fatal(err)
	}
	got := c["start"]
	if len(got) != 2 || len(c["stop"]) != 2 || len(c) != 2 {
		t.Fatalf("counted %v", c)
	}
	// A line that is read and written counts as written, one at a border as two, and what
	// comes before and after an operation, or is on the stack, not at all.
	want := map[string]touched{"shard": {1, 0}, "slots": {2, 1}, "other": {0, 1}}
	for name, w := range want {
		if got[0][name] != w {
			t.Errorf("the first start touched %v of %s, want %v", got[0][name], name, w)
		}
	}
	if len(got[0]) != len(want) {
		t.Errorf("the first start touched %v", got[0])
	}
	if got, want := c.table(), "| stop | 2 | slots | 2 | 1 |"; !strings.Contains(got, want) {
		t.Errorf("the table lacks %q:\n%s", want, got)
	}
}

func TestCount_Wrong(t *testing.T) {
	for _, text := range []string{"", "region 1\n", "region 0x1 x shard\n", "region 0x1000 8 shard\n S 00001000,8\n"} {
		if _, err := count(strings.NewReader(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
