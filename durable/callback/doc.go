// Package callback provides the handler for tasks that are HTTP requests: a task
// contains the request, and any worker sends it when the task is due.
//
// # Usage
//
//	calls := callback.New(callback.WithSecrets(secret))
//	defer calls.Close()
//	w := durable.NewWorker(client)
//	w.Handle(callback.Name, calls.Handle)
//
//	t, err := callback.Request{
//		URL:     "https://shop.example/orders/17/expire",
//		Headers: map[string]string{"Content-Type": "application/json"},
//		Body:    []byte(`{"order":17}`),
//	}.Task("order-17")
//	client.Schedule(ctx, t, durable.After(30*time.Minute))
//
// # How a response is judged
//
// Only the status decides: see [Judge]. 2xx ends the run. 408, 425, 429, 5xx and
// network errors lead to another attempt. Any other status makes the task a dead
// letter. Redirects are not followed. A Retry-After header delays the next attempt, by
// an hour at most. At most 64 KB of the body are read. The first 200 bytes go into the
// error of a failed attempt.
//
// Each host may use a limited share of a worker's places, so that a host that does not
// answer does not delay other hosts: see [WithPerHost].
//
// # What a receiver gets
//
// The request, and these headers:
//
//	Idempotency-Key   the same for every attempt at this run, and for no other
//	Tickless-Key      the task's key, escaped as in a URL's path
//	Tickless-Token    the fencing token: grows with each attempt at the key's tasks
//	Tickless-Attempt  the number of the attempt, from 1
//	Tickless-Due      when the run was due: RFC 3339, UTC
//
// [WithSecrets] adds Webhook-Id, Webhook-Timestamp and Webhook-Signature according to
// Standard Webhooks: see [Verify].
//
// A receiver may get the same request more than once. docs/receivers.md, in the folder
// of package durable, is written for receivers.
//
// # Which addresses are allowed
//
// Only addresses of the public internet are allowed by default. Loopback, private,
// link-local and reserved addresses need [WithAllowed], for example with
// netip.MustParsePrefix("127.0.0.0/8") for a receiver on the same machine. If an
// address is refused, the task becomes a dead letter. The check applies to the address
// of the connection itself, after the name was resolved, so a name that changes its
// address between a check and the request cannot bypass it. Proxies from the
// environment are not used.
package callback
