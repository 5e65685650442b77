//go:build unix

package sdkhttp

import (
	"errors"
	"net"
	"syscall"
)

// silent reports whether an idle connection is open and nothing has come over
// it: what comes unasked would be taken for the next answer.
func silent(idle net.Conn) bool {
	socket, ok := idle.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var read error
	err = raw.Read(func(fd uintptr) bool {
		_, read = syscall.Read(int(fd), make([]byte, 1)) // which does not block, nor leave anything of use
		return true
	})
	return err == nil && errors.Is(read, syscall.EAGAIN)
}
