package processes

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// maxLine bounds a line of a function's output in bytes; a longer one is split.
const maxLine = 64 << 10

// logs passes on the output of all functions by whole lines.
type logs struct {
	mu  sync.Mutex
	out io.Writer
}

// of returns the output of a process of the function.
func (l *logs) of(function string) *output { return &output{logs: l, name: function} }

// An output collects the output of one process until it has a whole line. The lock of logs guards it.
type output struct {
	logs *logs
	name string
	line bytes.Buffer
}

// named adds the process's id to the name, once it has started.
func (o *output) named(cmd *exec.Cmd) {
	o.logs.mu.Lock()
	defer o.logs.mu.Unlock()
	if cmd.Process != nil {
		o.name = fmt.Sprintf("%s[%d]", o.name, cmd.Process.Pid)
	}
}

func (o *output) Write(text []byte) (int, error) {
	o.logs.mu.Lock()
	defer o.logs.mu.Unlock()
	for rest := text; len(rest) > 0; {
		line, more, whole := bytes.Cut(rest, []byte("\n"))
		o.line.Write(line)
		if whole || o.line.Len() >= maxLine {
			_, _ = fmt.Fprintf(o.logs.out, "%s %s\n", o.name, o.line.Bytes()) // a failure must not stop the function
			o.line.Reset()
		}
		rest = more
	}
	return len(text), nil
}
