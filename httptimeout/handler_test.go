package httptimeout_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/httptimeout"
)

// The uploaded files are removed, although the handler parses the form of a copy of the
// request.
func TestHandler_FilesOfAForm(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // Windows
	files := func() int {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		return len(all)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("upload", "report.txt")
	require.NoError(t, err)
	_, err = part.Write(bytes.Repeat([]byte("x"), 1<<16))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	parse := func(r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		if files() != 1 {
			t.Error("the upload is not in a file")
		}
	}

	t.Run("on a server", func(t *testing.T) {
		h := httptimeout.Handler(time.Minute, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { parse(r) }))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			if r.MultipartForm == nil || len(r.MultipartForm.File["upload"]) != 1 || files() != 1 {
				t.Error("the request's own handler cannot read the upload")
			}
		}))
		defer srv.Close()
		resp, err := http.Post(srv.URL, w.FormDataContentType(), bytes.NewReader(form.Bytes()))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		srv.Close() // waits for the end of the request
		require.Zero(t, files())
	})

	limit := func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Second, "") }
	for _, test := range []struct {
		name  string
		outer func(http.Handler) http.Handler
		then  func() // called by the handler after parsing the form
		left  int    // number of files after the request
	}{
		{"below a TimeoutHandler", limit, func() {}, 0},
		{"below a TimeoutHandler that has given up", limit, func() { time.Sleep(time.Minute) }, 1},
		{"of a copy", func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r.WithContext(r.Context()))
			})
		}, func() {}, 0},
		{"of a handler that panics", func(h http.Handler) http.Handler { return h }, func() { panic(http.ErrAbortHandler) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := test.outer(httptimeout.Handler(time.Hour, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					parse(r)
					test.then()
				})))
				ctx, endRequest := context.WithCancel(t.Context())
				req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(form.Bytes()))
				req.Header.Set("Content-Type", w.FormDataContentType())
				func() {
					defer func() { recover() }()
					defer endRequest()
					h.ServeHTTP(httptest.NewRecorder(), req)
				}()
				synctest.Wait()
				require.Equal(t, test.left, files(), "the handler may still read its files")
				time.Sleep(time.Hour)
				require.Zero(t, files())
			})
		})
	}
}

// Only declared trailers of a request reach the handler. The test writes the request
// itself, because package http's client declares all trailers.
func TestHandler_TrailersOfARequest(t *testing.T) {
	trailer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, r.Trailer.Get("Sum"))
	})
	for _, test := range []struct {
		name, header string
		h            http.Handler
		want         string
	}{
		{"declared", "Trailer: Sum\r\n", httptimeout.Handler(time.Minute, trailer), "5d41"},
		{"not declared", "", httptimeout.Handler(time.Minute, trailer), ""},
		{"not declared, without Handler", "", trailer, "5d41"},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := httptest.NewServer(test.h)
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"+
				"Transfer-Encoding: chunked\r\n"+test.header+"\r\n5\r\nhello\r\n0\r\nSum: 5d41\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer resp.Body.Close()
			sum, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, test.want, string(sum))
		})
	}
}

// All trailers of a response reach the client, even undeclared ones.
func TestHandler_TrailersOfAResponse(t *testing.T) {
	srv := httptest.NewServer(httptimeout.Handler(time.Minute, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Sum")
		io.WriteString(w, "hello")
		http.NewResponseController(w).Flush()
		w.Header().Set("Sum", "5d41")
		w.Header().Set(http.TrailerPrefix+"Took", "1ms")
	})))
	defer srv.Close()
	resp, err := http.Get(srv.URL)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.Header{"Sum": {"5d41"}, "Took": {"1ms"}}, resp.Trailer)
}
