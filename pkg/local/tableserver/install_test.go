package tableserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// pinned returns the real binary, fetched once per machine. Only a machine that can neither fetch nor run it skips.
func pinned(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("looking for the cache directory: %v", err)
	}
	binary, err := Install(t.Context(), filepath.Join(cache, "commerce-integration", "dynoxide-"+Version))
	if errors.Is(err, ErrNoPackage) || errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("installing the table server: %v", err)
	}
	return binary
}

func TestInstallNeedsNoNpmOnceTheBinaryIsThere(t *testing.T) {
	first := pinned(t)
	t.Setenv("PATH", "")
	again, err := Install(t.Context(), filepath.Dir(first))
	if err != nil || again != first {
		t.Fatalf("Install without npm = %q, %v; want %q", again, err, first)
	}
}

func TestInstallReplacesATamperedBinary(t *testing.T) {
	pinned(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dynoxide"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	binary, err := Install(t.Context(), dir)
	if err != nil {
		t.Fatalf("Install over a tampered binary: %v", err)
	}
	want, err := pinFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifyBinary(binary, want); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("Install left %v, %v; want only the binary", left, err)
	}
}

func TestInstallSaysHowToMendAFailure(t *testing.T) {
	if _, err := pinFor(runtime.GOOS, runtime.GOARCH); err != nil {
		t.Skip(err)
	}
	tests := []struct {
		name, npm string
		want      []string
	}{
		{"npm missing", "", []string{"install Node.js", "npm pack @dynoxide/"}},
		{"offline", "echo 'npm error code ENOTFOUND' >&2; exit 1", []string{"check the network", "ENOTFOUND", "npm pack @dynoxide/"}},
		{"nothing written", "exit 0", []string{"left 0 tarballs"}},
		{"another package", "echo other > other.tgz", []string{"not used", "npm cache clean", "want sha512-"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := t.TempDir()
			if test.npm != "" {
				script := "#!/bin/sh\n" + test.npm + "\n"
				if err := os.WriteFile(filepath.Join(path, "npm"), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", path)
			dir := t.TempDir()
			binary, err := Install(t.Context(), dir)
			if err == nil {
				t.Fatalf("Install = %q, want an error", binary)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Install: got %q, want %q in it", err, part)
				}
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("Install left %v, want nothing", left)
			}
		})
	}
}

func TestInstallEndsWithItsContext(t *testing.T) {
	if _, err := pinFor(runtime.GOOS, runtime.GOARCH); err != nil {
		t.Skip(err)
	}
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "npm"), []byte("#!/bin/sh\nexec /bin/sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Install(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Fatalf("Install with an ended context: got %v, want %v", err, context.Canceled)
	}
}

func TestPlatformsWithoutAPackageAreToldTheAlternative(t *testing.T) {
	_, err := pinFor("plan9", "mips")
	if !errors.Is(err, ErrNoPackage) || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL_DYNAMODB") {
		t.Fatalf("pinFor(plan9, mips): got %v, want %v naming AWS_ENDPOINT_URL_DYNAMODB", err, ErrNoPackage)
	}
}

func TestInstallTakesARelativeDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	binary, err := Install(t.Context(), filepath.Join(".local", "bin"))
	if err != nil || !filepath.IsAbs(binary) {
		t.Errorf("got %q, %v; want an absolute path", binary, err)
	}
}
