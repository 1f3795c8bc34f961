package callbacks

import (
	"os/exec"
	"syscall"
)

// tie has a process end when this program dies, however it does.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
