package processes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACheckoutIsBuilt(t *testing.T) {
	root, folder := t.TempDir(), filepath.Join(t.TempDir(), "functions")
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example\n\ngo 1.26\n")
	write("functions/api/main.go", "package main\n\nfunc main() { println(\"built\") }\n")
	got, err := Build(t.Context(), root, folder, []string{"api"})
	if err != nil || got["api"] != filepath.Join(folder, "api") {
		t.Fatalf("got %v, %v; want the binary in %s", got, err, folder)
	}
	if _, err := os.Stat(got["api"]); err != nil {
		t.Error(err)
	}
	write("functions/api/main.go", "package main\n\nfunc main() { nothing() }\n")
	if _, err := Build(t.Context(), root, folder, []string{"api"}); err == nil || !strings.Contains(err.Error(), "undefined: nothing") {
		t.Errorf("code that does not compile: got %v, want what the compiler says", err)
	}
	t.Setenv("PATH", "")
	if _, err := Build(t.Context(), root, folder, []string{"api"}); err == nil || !strings.Contains(err.Error(), "which needs Go") {
		t.Errorf("without Go: got %v", err)
	}
}
