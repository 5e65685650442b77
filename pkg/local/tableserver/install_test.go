package tableserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pinned returns the real binary, fetched once per machine. Only a machine that can neither fetch nor run it skips.
func pinned(t testing.TB) Program {
	t.Helper()
	cache, err := CacheDir()
	if err != nil {
		t.Fatalf("looking for the cache directory: %v", err)
	}
	program, err := Dynoxide.Install(t.Context(), cache)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("installing the table server: %v", err)
	}
	return program
}

func TestInstallNeedsNoNpmOnceTheBinaryIsThere(t *testing.T) {
	first := pinned(t)
	t.Setenv("PATH", "")
	again, err := Dynoxide.Install(t.Context(), filepath.Dir(first.path))
	if err != nil || again != first {
		t.Fatalf("Install without npm = %v, %v; want %v", again, err, first)
	}
}

func TestInstallReplacesATamperedBinary(t *testing.T) {
	pinned(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dynoxide"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := Dynoxide.Install(t.Context(), dir)
	if err != nil {
		t.Fatalf("Install over a tampered binary: %v", err)
	}
	want := pins[Dynoxide]
	if err := want.verify(program.path); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("Install left %v, %v; want only the binary", left, err)
	}
}

func TestInstallSaysHowToMendAFailure(t *testing.T) {
	tests := []struct {
		name, npm string
		want      []string
	}{
		{"npm missing", "", []string{"install Node.js", "npm pack @dynoxide/"}},
		{"offline", "echo 'npm error code ENOTFOUND' >&2; exit 1", []string{"check the network", "ENOTFOUND", "npm pack @dynoxide/"}},
		{"nothing written", "exit 0", []string{"no such file", "check the network"}},
		{
			"another package", "mkdir -p node_modules/@dynoxide/linux-x64; echo other > node_modules/@dynoxide/linux-x64/dynoxide",
			[]string{"not used", "npm cache clean", "SHA-256", "want be909b79"},
		},
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
			t.Setenv("PATH", path+":/bin:/usr/bin")
			if test.npm == "" {
				t.Setenv("PATH", path)
			}
			dir := t.TempDir()
			program, err := Dynoxide.Install(t.Context(), dir)
			if err == nil {
				t.Fatalf("Install = %v, want an error", program)
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
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "npm"), []byte("#!/bin/sh\nexec /bin/sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dynoxide.Install(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Fatalf("Install with an ended context: got %v, want %v", err, context.Canceled)
	}
}

func TestAPlatformHasTheServerThatIsPublishedForIt(t *testing.T) {
	for platform, want := range map[string]Kind{
		"linux/amd64": Dynoxide, "darwin/amd64": DynamoDBLocal, "darwin/arm64": DynamoDBLocal, "windows/amd64": DynamoDBLocal,
	} {
		goos, goarch, _ := strings.Cut(platform, "/")
		if got, err := KindFor(goos, goarch); err != nil || got != want {
			t.Errorf("KindFor(%s) = %s, %v; want %s", platform, got, err, want)
		}
	}
	if _, err := KindFor("plan9", "mips"); !errors.Is(err, ErrNoPackage) || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL_DYNAMODB") {
		t.Errorf("KindFor(plan9, mips): got %v, want %v naming AWS_ENDPOINT_URL_DYNAMODB", err, ErrNoPackage)
	}
}

func TestDynamoDBLocalNeedsMavenAndJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := DynamoDBLocal.Install(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "install Maven and Java 17") {
		t.Errorf("Install without Maven: got %v, want it to say what to install", err)
	}
}

func TestTheChecksumOfAFolderIsThatOfItsListOfChecksums(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"b": "two", "a": "one"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// printf one >a; printf two >b; LC_ALL=C sha256sum * | sha256sum
	const want = "d17138d96382403690482a89da33475336ab36c046a6912a86badedd62301cb8"
	if got, err := checksum(dir); err != nil || got != want {
		t.Errorf("checksum = %s, %v; want %s", got, err, want)
	}
}

func TestInstallTakesARelativeDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	program, err := Dynoxide.Install(t.Context(), filepath.Join(".local", "bin"))
	if err != nil || !filepath.IsAbs(program.path) {
		t.Errorf("got %v, %v; want an absolute path", program, err)
	}
}
