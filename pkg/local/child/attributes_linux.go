package child

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Apart puts a process into a process group of its own before it starts. A terminal sends no signals to that group.
func Apart(cmd *exec.Cmd) { attributes(cmd).Setpgid = true }

// tie makes the kernel kill the child when the thread that started it ends.
func tie(cmd *exec.Cmd) { attributes(cmd).Pdeathsig = syscall.SIGKILL }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// block blocks signals, up to number 32, in the calling thread and in the children that it starts.
func block(signals []syscall.Signal) error {
	var set unix.Sigset_t
	for _, s := range signals {
		set.Val[0] |= 1 << (s - 1)
	}
	return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// onMainThread reports whether the calling thread is the process's first.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }
