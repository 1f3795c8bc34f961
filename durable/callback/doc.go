// Package callback runs tasks that are HTTP requests: a task contains a request, and a
// worker sends it when the task is due.
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
// # Responses
//
// The status of the response decides: see [Judge]. 2xx is a success. After 408, 425, 429,
// 5xx or a network error, the task is tried again. Any other status makes the task a dead
// letter.
//
// Redirects are not followed. A Retry-After header delays the next attempt, by about an
// hour at most. The error of an attempt contains the first 200 bytes of the body. If the task
// has a [durable.Retention], the last answer is the result of its run: see [ParseResult].
//
// A host that does not answer does not delay other hosts: see [WithPerHost].
//
// # Headers
//
// Each request has these headers besides its own:
//
//	Idempotency-Key   identifies the run: the same for all its attempts
//	Tickless-Key      the task's key, escaped as in a URL's path
//	Tickless-Token    the fencing token, which grows with each attempt
//	Tickless-Attempt  the number of the attempt, from 1
//	Tickless-Due      when the run was due: RFC 3339, UTC
//
// The last attempt has Tickless-Last-Attempt: true. A follow-up (see [durable.Task]) also
// says which run of the task with the same key has ended:
//
//	Tickless-Ended        done or failed
//	Tickless-Ended-Due    when that run was due
//	Tickless-Ended-Error  the latest error of a failed run, escaped as in a URL's path
//
// [WithSecrets] adds a signature according to Standard Webhooks: see [Verify].
//
// A receiver may get a request more than once. docs/receivers.md, in the folder of package
// durable, explains what receivers should do.
//
// # Allowed addresses
//
// Requests may go only to addresses of the public internet. [WithAllowed] allows loopback,
// private, link-local and reserved addresses, for example 127.0.0.0/8 for a receiver on
// the same machine. A task for a refused address becomes a dead letter.
//
// The address is checked when the connection is made, after the name was resolved.
// Changing the name's address therefore does not bypass the check. Proxies from the
// environment are not used.
package callback
