package processes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds functions of a checkout of the repository into a folder, as make build does, but for this machine. It
// returns the path of each function's binary, and needs the Go command.
func Build(ctx context.Context, checkout, folder string, functions []string) (map[string]string, error) {
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
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the functions, which needs Go and a checkout of the repository: %w\n%s", err, strings.TrimSpace(string(said)))
	}
	return built, nil
}
