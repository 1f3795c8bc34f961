package httptimeout_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tickless/tickless/httptimeout"
)

func Example() {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, ok := r.Context().Deadline()
		fmt.Fprint(w, "a deadline: ", ok)
	})
	srv := httptest.NewServer(httptimeout.Handler(30*time.Second, hello))
	defer srv.Close()
	client := &http.Client{Transport: httptimeout.Transport(10*time.Second, nil)}
	resp, err := client.Get(srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	io.Copy(fmtWriter{}, resp.Body)
	// Output: a deadline: true
}

type fmtWriter struct{}

func (fmtWriter) Write(p []byte) (int, error) { return fmt.Print(string(p)) }

// Each request has 10 ms. The handler waits until its request's context is done, and
// then answers.
func ExampleHandler() {
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Minute): // stands for the work
		case <-r.Context().Done():
			http.Error(w, r.Context().Err().Error(), http.StatusGatewayTimeout)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := &http.Server{Handler: httptimeout.Handler(10*time.Millisecond, slow)}
	go srv.Serve(l)
	defer srv.Close()
	resp, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 504 Gateway Timeout
}
