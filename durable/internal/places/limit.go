package places

import "time"

// A Limit says how many tasks of a handler may run at a time, and how many may start in a
// second. Zero means no limit. Workers tell their limits to others in this JSON.
type Limit struct {
	Places int     `json:"places,omitempty"`
	Rate   float64 `json:"rate,omitempty"`
}

// burst returns how many tasks may start at the same time: what the rate allows in a tenth of
// a second, and at least one.
func (l Limit) burst() float64 { return max(1, l.Rate/10) }

// A usage is a handler's use of the places.
type usage struct {
	Limit
	taken           int       // places in use; less between the end of a task and the Settle of its claim, even below 0
	reserved        int       // places reserved for claims, if the handler has a limit
	tokens          float64   // how many tasks the rate allows to start now
	tokensUpdatedAt time.Time // when tokens was last updated
}

func (h *usage) isLimited() bool { return h.Limit != Limit{} }

// usablePlaces returns how many of n places the handler's limit allows it to use.
func (h *usage) usablePlaces(n int, now time.Time) int {
	if h.Places > 0 {
		n = min(n, h.Places-h.taken-h.reserved)
	}
	if h.Rate > 0 {
		h.addTokens(now, 0)
		n = min(n, int(h.tokens))
	}
	return max(n, 0)
}

// addTokens adds n tokens, and what the rate allows for the time since the last call. A
// token lets one task start.
func (h *usage) addTokens(now time.Time, n int) {
	h.tokens = min(h.burst(), h.tokens+h.Rate*now.Sub(h.tokensUpdatedAt).Seconds()+float64(n))
	h.tokensUpdatedAt = now
}
