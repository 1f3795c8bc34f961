package simulation

import (
	"fmt"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

var opNames = map[store.Op]string{
	store.Schedule: "schedule", store.Reschedule: "reschedule", store.Cancel: "cancel", store.Requeue: "requeue", store.Purge: "purge",
	store.Import: "import", store.SetLimit: "limit",
	store.PauseTask: "pause task", store.ResumeTask: "resume task",
	store.PauseHandler: "pause handler", store.ResumeHandler: "resume handler", store.Pause: "pause", store.Resume: "resume", store.Sync: "sync",
}

var endNames = [...]string{store.Done: "done", store.Retry: "retry", store.Failed: "failed", store.HandBack: "back", store.Dropped: "dropped"}

func idsOf(items []store.Item) string {
	var ids []string
	for _, x := range items {
		ids = append(ids, fmt.Sprintf("%q at %v", x.ID, x.When))
	}
	return strings.Join(ids, ", ")
}

func roundText(r *store.Round) string {
	var b strings.Builder
	for _, x := range r.Reports {
		fmt.Fprintf(&b, "%s %q %d, ", endNames[x.End], x.ID, x.Token)
	}
	for _, x := range r.Extend {
		fmt.Fprintf(&b, "extend %q %d, ", x.ID, x.Token)
	}
	if c := &r.Claim; c.Asked {
		fmt.Fprintf(&b, "claim %d rooms %v spare %d suspects %v full %v pass %v", c.Max, c.Rooms, c.Spare, c.Suspects, c.Full, c.Pass)
	}
	return b.String()
}

func answerText(a *store.Answer) string {
	var b strings.Builder
	for _, x := range a.Tasks {
		fmt.Fprintf(&b, "%q %d, ", x.ID, x.Token)
	}
	return fmt.Sprint(a.Receipts, a.Extensions, " tasks ", b.String(), " next ", a.Next, " limited ", a.Limited)
}
