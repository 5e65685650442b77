package child

import (
	"os/exec"
	"syscall"
	"unsafe"

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

// Block blocks signals, up to number 32, in the process. Go programs unblock them: use [Apart] to keep a terminal's
// signals from those.
func Block(signals ...syscall.Signal) func() error {
	return func() error {
		var set unix.Sigset_t
		for _, s := range signals {
			set.Val[0] |= 1 << (s - 1)
		}
		return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
	}
}

// SkipSync makes fsync and fdatasync do nothing in the process, where the kernel lets it. What the process writes outlives
// it, however it ends, but not a loss of power.
func SkipSync() error {
	const number = 0 // of the system call: where it lies in struct seccomp_data
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FSYNC, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FDATASYNC, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO}, // with no error
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, _ = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&filter)))
	return nil
}
