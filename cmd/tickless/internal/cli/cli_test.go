package cli

import "testing"

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
		var c Count
		if err := c.Set(tt.in); err != nil || int(c) != tt.want || c.String() != tt.text {
			t.Errorf("%q is %d (%q), %v, want %d (%q)", tt.in, int(c), c.String(), err, tt.want, tt.text)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	var cs Counts
	if err := cs.Set("1k, 2M,3"); err != nil || cs.String() != "1k,2M,3" {
		t.Errorf("read %v, %v", cs.String(), err)
	}
}
