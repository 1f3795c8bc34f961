package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/service/api"
)

// A PATCH with a field that differs from a known one only in case is refused: it changed nothing,
// and the answer was 200.
func TestAPI_PatchOfAnotherCase(t *testing.T) {
	a := api.New(durable.New(memstore.New()))
	do := func(method, body string) (int, string) {
		r := httptest.NewRequest(method, "/v1/tasks/k", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	code, answer := do("PUT", `{"url":"http://example.com/a","delay":"1h","keep":{"runs":5}}`)
	require.Equal(t, http.StatusCreated, code, answer)
	for body, pointer := range map[string]string{
		`{"URL":"http://example.com/b"}`: "/URL",
		`{"Delay":"2h"}`:                 "/Delay",
		`{"keep":{"Runs":7}}`:            "/Runs",
		`{"on_success":{"url":"http://example.com","Headers":{"X-Name":"v"}}}`: "/Headers",
	} {
		code, answer := do("PATCH", body)
		require.Equal(t, http.StatusUnprocessableEntity, code, answer)
		require.Contains(t, answer, `"pointer":"`+pointer+`"`)
	}
	code, answer = do("PATCH", `{"headers":{"X-Name":"v"},"on_success":{"url":"http://example.com/c","headers":{"X-Name":"w"}}}`)
	require.Equal(t, http.StatusOK, code, answer)
	require.Contains(t, answer, `"X-Name":"v"`)
	require.Contains(t, answer, `"X-Name":"w"`)
}
