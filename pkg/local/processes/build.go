package processes

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNoBinaries says that functions can be neither built nor found.
var ErrNoBinaries = errors.New("the functions' binaries can be neither built nor found")

// Binaries returns the path of each function's binary. In a checkout with the Go command it builds them into the
// folder as they are deployed, but compiled for this machine. Elsewhere it takes those of root/dist, if they are for this
// machine. It fails with [ErrNoBinaries] when neither is possible.
func Binaries(ctx context.Context, root, folder string, functions []string) (map[string]string, error) {
	compiler, err := exec.LookPath("go")
	if err == nil && isCheckout(root, functions) {
		return build(ctx, compiler, root, folder, functions)
	}
	why := fmt.Sprintf("%s is not a checkout of the repository", root)
	if err != nil {
		why = "the Go command is not installed"
	}
	found := map[string]string{}
	for _, name := range functions {
		path, err := filepath.Abs(filepath.Join(root, "dist", name, "bootstrap"))
		if err == nil {
			err = runsHere(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s, and %w; run make build ARCH=%s where there is Go", ErrNoBinaries, why, err, runtime.GOARCH)
		}
		found[name] = path
	}
	return found, nil
}

func isCheckout(root string, functions []string) bool {
	for _, name := range functions {
		if _, err := os.Stat(filepath.Join(root, "functions", name, "main.go")); err != nil {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(root, "go.mod"))
	return err == nil
}

// build builds the functions with the flags of make build.
func build(ctx context.Context, compiler, root, folder string, functions []string) (map[string]string, error) {
	folder, err := filepath.Abs(folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("make the folder of the functions' binaries: %w", err)
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", folder + string(filepath.Separator)}
	built := map[string]string{}
	for _, name := range functions {
		args = append(args, "./functions/"+name)
		built[name] = filepath.Join(folder, name)
	}
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build the functions: go build: %w\n%s", err, strings.TrimSpace(said.String()))
	}
	return built, nil
}

// runsHere returns an error that says why a binary of dist does not run on this machine.
func runsHere(path string) error {
	file, err := elf.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not there", path)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()
	here := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if runtime.GOOS != "linux" || file.Machine != here {
		return fmt.Errorf("%s is for Linux on %s, this machine is %s on %s", path, file.Machine, runtime.GOOS, runtime.GOARCH)
	}
	return nil
}
