package idle_test

import (
	"errors"
	"net"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// A Conn has the methods of *net.TCPConn and *net.UnixConn. The test fails if a new
// version of Go adds a method.
func TestConn_HasTheMethodsOfPackageNets(t *testing.T) {
	ours := reflect.TypeFor[*idle.Conn]()
	// A Conn lacks the methods of *net.UnixConn for messages. Its ReadFrom and WriteTo
	// are those of io.Copy.
	others := map[string]bool{"ReadFrom": true, "WriteTo": true, "ReadFromUnix": true, "WriteToUnix": true, "ReadMsgUnix": true, "WriteMsgUnix": true}
	for _, theirs := range []reflect.Type{reflect.TypeFor[*net.TCPConn](), reflect.TypeFor[*net.UnixConn]()} {
		for i := range theirs.NumMethod() {
			want := theirs.Method(i)
			got, ok := ours.MethodByName(want.Name)
			switch {
			case theirs == reflect.TypeFor[*net.UnixConn]() && others[want.Name]:
			case !ok:
				t.Errorf("Conn lacks the method %s of %v", want.Name, theirs)
			case withoutReceiver(got.Type) != withoutReceiver(want.Type):
				t.Errorf("%s has the type %v, but that of %v has the type %v", want.Name, got.Type, theirs, want.Type)
			}
		}
	}
}

// withoutReceiver returns a method's type without its receiver.
func withoutReceiver(m reflect.Type) reflect.Type {
	var in, out []reflect.Type
	for i := 1; i < m.NumIn(); i++ {
		in = append(in, m.In(i))
	}
	for i := range m.NumOut() {
		out = append(out, m.Out(i))
	}
	return reflect.FuncOf(in, out, m.IsVariadic())
}

// sockoptCalls returns a call of each method of c for socket options.
func sockoptCalls(c *idle.Conn) map[string]func() error {
	return map[string]func() error{
		"SetKeepAlive":       func() error { return c.SetKeepAlive(true) },
		"SetKeepAlivePeriod": func() error { return c.SetKeepAlivePeriod(time.Minute) },
		"SetKeepAliveConfig": func() error { return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}) },
		"SetNoDelay":         func() error { return c.SetNoDelay(false) },
		"SetLinger":          func() error { return c.SetLinger(1) },
		"SetReadBuffer":      func() error { return c.SetReadBuffer(1 << 16) },
		"SetWriteBuffer":     func() error { return c.SetWriteBuffer(1 << 16) },
		"MultipathTCP":       func() error { _, err := c.MultipathTCP(); return err },
		"File": func() error {
			f, err := c.File()
			if err == nil {
				f.Close()
			}
			return err
		},
	}
}

func TestConn_SocketOptions(t *testing.T) {
	cs := idle.NewConns(time.Minute)
	defer cs.Close()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c, err := cs.Wrap(ours)
	require.NoError(t, err)
	defer c.Close()
	for name, call := range sockoptCalls(c) {
		err := call()
		require.ErrorIs(t, err, errors.ErrUnsupported, name)
		require.ErrorContains(t, err, "idle: "+name+" on a *net.pipe", name)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	tcp, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	c, err = cs.Wrap(tcp)
	require.NoError(t, err)
	for name, call := range sockoptCalls(c) {
		err := call()
		switch {
		case name == "File" && runtime.GOOS == "windows":
		default:
			require.NoError(t, err, name)
		}
	}
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.SetNoDelay(true), net.ErrClosed)
}
