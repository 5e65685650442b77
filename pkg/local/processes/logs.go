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

// logs passes on the output of all functions.
type logs struct {
	mu  sync.Mutex
	out io.Writer
}

// of returns the output of a process of the function.
func (l *logs) of(function string) *output { return &output{logs: l, name: function} }

// An output collects the output of one process until it has a whole line.
type output struct {
	logs *logs
	name string

	mu   sync.Mutex
	line bytes.Buffer
}

// named adds the process's id to the name, once it has started.
func (o *output) named(cmd *exec.Cmd) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cmd.Process != nil {
		o.name = fmt.Sprintf("%s[%d]", o.name, cmd.Process.Pid)
	}
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := text; len(rest) > 0; {
		line, more, whole := bytes.Cut(rest, []byte("\n"))
		o.line.Write(line)
		if whole || o.line.Len() >= maxLine {
			o.flush()
		}
		rest = more
	}
	return len(text), nil
}

// flush passes on one line.
func (o *output) flush() {
	o.logs.mu.Lock()
	defer o.logs.mu.Unlock()
	_, _ = fmt.Fprintf(o.logs.out, "%s %s\n", o.name, o.line.Bytes()) // a failure must not stop the function
	o.line.Reset()
}
