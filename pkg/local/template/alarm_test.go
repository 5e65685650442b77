package template

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A metric filter whose message nobody logs makes its alarm silent.
func TestMetricFiltersMatchMessagesThatAreLogged(t *testing.T) {
	_, n, _ := stack(t)
	code := sources(t)
	filters := 0
	for id, resource := range n.get("Resources").pairs() {
		if resource.get("Type").text != "AWS::Logs::MetricFilter" {
			continue
		}
		filters++
		pattern := resource.get("Properties", "FilterPattern").text
		messages := regexp.MustCompile(`\$\.message = ("[^"]+")`).FindAllStringSubmatch(pattern, -1)
		if len(messages) == 0 {
			t.Errorf("%s: no message in %s", id, pattern)
		}
		for _, message := range messages {
			if !strings.Contains(code, message[1]) {
				t.Errorf("%s: nothing logs the message %s", id, message[1])
			}
		}
	}
	if filters == 0 {
		t.Error("no metric filter is found")
	}
}

// sources is the code of the service, without tests.
func sources(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}
