// Package callback is the handler for tasks that are HTTP requests: a task says
// what to send where, and any worker sends it when it is due.
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
// # What becomes of a call
//
// A status of 2xx ends the run. The statuses 408, 425, 429 and 5xx and errors of
// the network have it tried again, not before the time of a Retry-After header if
// there is one, and up to a tenth of it and 10 ms later: see [WithMaxRetryAfter]. All
// other statuses make a dead letter: see [Judge]. The status decides alone: of what comes
// after it up to 64 KB are read, and the first 200 bytes are kept for the dead letter. Redirects are not followed.
//
// A host has a share of a worker's places: see [WithPerHost]. What exceeds it is put
// off, so that a host that does not answer does not hold up the others.
//
// # What a receiver gets
//
// The request, and these headers:
//
//	Idempotency-Key   the same for every attempt at this run, and for no other
//	Tickless-Key      the task's key, escaped as in a URL's path
//	Tickless-Token    the fencing token: grows with each attempt at the key's tasks
//	Tickless-Attempt  from 1
//	Tickless-Due      when it was due: RFC 3339, UTC
//
// With [WithSecrets] there are also Webhook-Id, Webhook-Timestamp and Webhook-Signature, as
// Standard Webhooks says: see [Verify].
//
// A call may come more than once: docs/receivers.md, in the folder of package durable,
// is for those who are called.
//
// # Where it connects to
//
// Loopback, private, link-local and all other addresses that are not of the
// public internet are refused unless [WithAllowed] has them (for a receiver on your own
// machine: netip.MustParsePrefix("127.0.0.0/8")), and the task becomes
// a dead letter if its host has no other address. What is looked at is the address
// of the connection itself, after the name was resolved, so that it does not help
// to let a name point elsewhere between a check and a call. Proxies of the
// environment are not used.
package callback
