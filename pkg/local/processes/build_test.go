package processes

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// lay writes files below a folder.
func lay(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return root
}

// program is a Linux executable without anything to execute.
func program(machine elf.Machine) string {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(header[16:], uint16(elf.ET_EXEC))
	binary.LittleEndian.PutUint16(header[18:], uint16(machine))
	binary.LittleEndian.PutUint32(header[20:], 1)
	binary.LittleEndian.PutUint16(header[52:], 64)
	binary.LittleEndian.PutUint16(header[58:], 64)
	return string(header)
}

func machines() (here, other elf.Machine) {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64, elf.EM_X86_64
	}
	return elf.EM_X86_64, elf.EM_AARCH64
}

func TestACheckoutIsBuilt(t *testing.T) {
	root := lay(t, map[string]string{
		"go.mod":                "module example\n\ngo 1.26\n",
		"functions/api/main.go": "package main\n\nfunc main() { println(\"built\") }\n",
		"dist/api/bootstrap":    program(elf.EM_NONE),
	})
	folder := filepath.Join(t.TempDir(), "functions")
	got, err := Binaries(t.Context(), root, folder, []string{"api"})
	if err != nil || got["api"] != filepath.Join(folder, "api") {
		t.Fatalf("got %v, %v; want the binary in %s", got, err, folder)
	}
	if _, err := os.Stat(got["api"]); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(root, "functions", "api", "main.go"), []byte("package main\n\nfunc main() { nothing() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Binaries(t.Context(), root, folder, []string{"api"}); err == nil || !strings.Contains(err.Error(), "undefined: nothing") {
		t.Errorf("code that does not compile: got %v, want what the compiler says", err)
	}
}

func TestElsewhereTheBinariesOfDistAreTaken(t *testing.T) {
	here, other := machines()
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // of the error, "" for success
	}{
		{"for this machine", map[string]string{"dist/api/bootstrap": program(here)}, ""},
		{"for another machine", map[string]string{"dist/api/bootstrap": program(other)}, "this machine is linux on " + runtime.GOARCH},
		{"no program", map[string]string{"dist/api/bootstrap": "#!/bin/sh\n" + strings.Repeat("#", 64)}, "bad magic number"},
		{"none", nil, "is not there; run make build ARCH=" + runtime.GOARCH},
	} {
		root := lay(t, c.files)
		got, err := Binaries(t.Context(), root, t.TempDir(), []string{"api"})
		switch {
		case c.want == "" && (err != nil || got["api"] != filepath.Join(root, "dist", "api", "bootstrap")):
			t.Errorf("%s: got %v, %v; want the binary in dist", c.name, got, err)
		case c.want != "" && (!errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	t.Setenv("PATH", "")
	if _, err := Binaries(t.Context(), t.TempDir(), t.TempDir(), []string{"api"}); !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "the Go command is not installed") {
		t.Errorf("without Go: got %v", err)
	}
}
