package cost

import "testing"

// Test sees that no operation's cost grows faster than its documentation says. The
// packages are those whose statements count. It is left out of short tests.
func Test(t *testing.T, ops []Op, packages string) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	costs, err := Measure(t.TempDir(), ops, packages)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range costs {
		t.Run(c.Name, func(t *testing.T) {
			t.Log(c)
			if err := c.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
