package callback

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable"
)

// MaxAnswer is how many bytes of an answer's body a [Result] has.
const MaxAnswer = 1 << 10

// A Result is the answer to the last request of a run, successful or not.
type Result struct {
	Status   int           // the HTTP status; 0 without an answer
	Duration time.Duration // from the request to the end of the answer
	Body     []byte        // the first MaxAnswer bytes of the answer
}

// encodedResult is the JSON of a Result. Bytes replaces Body if the body is not UTF-8, or too
// long as a JSON string.
type encodedResult struct {
	Status int     `json:"status,omitempty"`
	Millis float64 `json:"duration_ms"`
	Body   string  `json:"body,omitempty"`
	Bytes  []byte  `json:"body64,omitempty"` // base64
}

func (r *Result) encode() []byte {
	x := encodedResult{Status: r.Status, Millis: float64(r.Duration.Microseconds()) / 1000}
	if utf8.Valid(r.Body) {
		x.Body = string(r.Body)
	} else {
		x.Bytes = r.Body
	}
	b, err := json.Marshal(x)
	if err == nil && len(b) > durable.MaxResult {
		x.Body, x.Bytes = "", r.Body
		b, err = json.Marshal(x)
	}
	if err != nil {
		panic(err) // impossible: all fields can be encoded
	}
	return b
}

// ParseResult returns the Result in the Result of a [durable.Run].
func ParseResult(b []byte) (Result, error) {
	var x encodedResult
	if err := json.Unmarshal(b, &x); err != nil {
		return Result{}, invalidf("the result was not made by Handle: %v", err)
	}
	r := Result{Status: x.Status, Duration: time.Duration(x.Millis * float64(time.Millisecond)), Body: x.Bytes}
	if len(r.Body) == 0 && x.Body != "" {
		r.Body = []byte(x.Body)
	}
	return r, nil
}
