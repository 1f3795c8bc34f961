//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverUser returns the user that runs the server, or nil for the test's own: PostgreSQL
// refuses root.
func serverUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
}

// asServer makes the command run as the server's user, in its own process group, so that
// Ctrl-C at the terminal does not end it.
func asServer(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: serverUser()}
}

func giveToServer(dir string) error {
	if c := serverUser(); c != nil {
		return os.Chown(dir, int(c.Uid), int(c.Gid))
	}
	return nil
}
