package figures

import (
	"fmt"
	"testing"
)

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
		text string
	}{
		{"1", 1, "1"},
		{"5000", 5000, "5k"},
		{"10k", 10_000, "10k"},
		{"10K", 10_000, "10k"},
		{"1.5M", 1_500_000, "1500k"},
		{"1_000_000", 1_000_000, "1M"},
		{"-3", -3, "-3"},
		{"0", 0, "0"},
	} {
		var c CountFlag
		if err := c.Set(tt.in); err != nil || int(c) != tt.want || c.String() != tt.text {
			t.Errorf("%q is %d (%q), %v, want %d (%q)", tt.in, int(c), c.String(), err, tt.want, tt.text)
		}
	}
}

// Numbers with two decimals are parsed exactly. Multiplying them by a thousand or a
// million in floating point would often round.
func TestCount_Decimals(t *testing.T) {
	for i := range 2000 {
		for suffix, scale := range map[string]int{"k": 10, "M": 10_000} {
			in := fmt.Sprintf("%d.%02d%s", i/100, i%100, suffix)
			var c CountFlag
			if err := c.Set(in); err != nil || int(c) != i*scale {
				t.Errorf("%q is %d, %v, want %d", in, int(c), err, i*scale)
			}
		}
	}
	for _, in := range []string{"1.0005k", "0.1", "k", "M", "1kk", "", "3G", "3000M", "Infk"} {
		if err := new(CountFlag).Set(in); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := GroupDigits(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	var cs CountsFlag
	if err := cs.Set("1k, 2M,3"); err != nil || cs.String() != "1k,2M,3" {
		t.Errorf("read %v, %v", cs.String(), err)
	}
}
