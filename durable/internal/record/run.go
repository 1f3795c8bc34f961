package record

import (
	"fmt"
	"strconv"

	"github.com/tickless/tickless/durable/store"
)

// beganDigits is how many decimal digits come before the handler's result: when the last
// attempt was claimed.
const beganDigits = 16

// Result returns the result of a run as the store keeps it: when its last attempt was claimed,
// and what the handler has set.
func Result(began store.Time, result []byte) []byte {
	return fmt.Appendf(nil, "%0*d%s", beganDigits, began, result)
}

// ParseResult decodes what Result made. ok is false for a run whose handler was not called, or
// whose last attempt crashed.
func ParseResult(b []byte) (began store.Time, result []byte, ok bool) {
	if len(b) < beganDigits {
		return 0, nil, false
	}
	n, err := strconv.ParseInt(string(b[:beganDigits]), 10, 64)
	return store.Time(n), b[beganDigits:], err == nil
}
