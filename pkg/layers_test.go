// Package pkg_test holds the tests about the tree as a whole.
package pkg_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/commerce-integration/service/"

// layer is a folder with the folders below it.
type layer struct{ folder, below string }

// layers lists, for each folder, which others its packages may import, from
// the bottom up: no folder imports one that stands below it here. Packages of one
// folder may import each other. A longer path replaces its folder's rule.
var layers = []layer{
	{"pkg/base", ""},
	{"pkg/account", "base"},
	{"pkg/lists", "base"},
	{"pkg/auth", "base account"},
	{"pkg/commerce", "base lists"},
	{"pkg/webhook", "base account lists commerce"},
	{"pkg/index", "base lists commerce webhook"},
	{"pkg/queue", "base commerce webhook"},
	{"pkg/api", "base account lists auth commerce webhook index"},
	{"pkg/dynamo", "base account auth commerce webhook index api"},
	{"pkg/ingest", "base commerce dynamo"},
	{"pkg/delivery", "base account commerce webhook index queue dynamo"},
	{"pkg/delivery/worker", "base account commerce webhook queue delivery"}, // it knows the table by its Store alone
	{"pkg/app", "base lists auth commerce webhook index queue api dynamo ingest delivery"},
	{"functions", "app api"},
	{"pkg/ops", "base lists commerce webhook index queue dynamo delivery"},
	{"pkg/local", "base auth commerce api app"},
	{"pkg/testkit", "base account auth commerce webhook queue dynamo delivery ops local"},
	{"pkg/lab", "base account lists auth commerce webhook index queue dynamo app ops local"},
	{"pkg/cmd", "base account auth commerce webhook index queue api dynamo delivery app ops local lab"},
}

// awsUsers are the only packages that may import AWS modules.
var awsUsers = []string{
	"pkg/dynamo", "pkg/queue", "pkg/delivery/snstopic", "pkg/delivery/arntarget", "pkg/base/sdkhttp", "pkg/ops", "pkg/app", "pkg/lab/", "pkg/local/", "pkg/cmd/", "pkg/testkit/", "functions/",
	// These take the event types of aws-lambda-go, and no client.
	"pkg/ingest", "pkg/index/indexer", "pkg/delivery/counter", "pkg/delivery/dispatcher", "pkg/delivery/worker", "pkg/delivery/sweeper",
}

// imports lists each package of the module with what it imports, tests apart.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		found[strings.TrimPrefix(fields[0], module)] = fields[1:]
	}
	if len(found) < 20 {
		t.Fatalf("go list found %d packages, want the whole module", len(found))
	}
	return found
}

// folder is the folder of the layers that a package is in, and what it may import.
func folder(name string) (found string, below []string) {
	for _, l := range layers {
		if len(l.folder) > len(found) && (name == l.folder || strings.HasPrefix(name, l.folder+"/")) {
			found, below = l.folder, strings.Fields(l.below)
		}
	}
	return found, below
}

func TestPackagesImportOnlyWhatIsBelowThem(t *testing.T) {
	for name, imported := range imports(t) {
		from, below := folder(name)
		if from == "" && name != "pkg" {
			t.Errorf("%s has no place in the layers", name)
		}
		for _, path := range imported {
			ours, isOurs := strings.CutPrefix(path, module)
			if to, _ := folder(ours); isOurs && to != from && !slices.Contains(below, strings.Split(ours+"/", "/")[1]) {
				t.Errorf("%s imports %s, which is not below it", name, ours)
			}
		}
	}
}

func TestLayersStandBelowWhatImportsThem(t *testing.T) {
	for i, l := range layers {
		for _, below := range strings.Fields(l.below) {
			if !slices.ContainsFunc(layers[:i], func(lower layer) bool { return lower.folder == "pkg/"+below }) {
				t.Errorf("%s imports pkg/%s, which does not stand above it in the list", l.folder, below)
			}
		}
	}
}

func TestOnlyTheOuterPackagesImportAWS(t *testing.T) {
	for name, imported := range imports(t) {
		if slices.ContainsFunc(awsUsers, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		for _, path := range imported {
			if strings.HasPrefix(path, "github.com/aws") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

func TestOnlyOnePackageSpeaksToEachService(t *testing.T) {
	owners := map[string][]string{
		"github.com/aws/aws-sdk-go-v2/service/dynamodb": {"pkg/dynamo", "pkg/app", "pkg/lab/", "pkg/local/", "pkg/cmd/", "pkg/testkit/"},
		"github.com/aws/aws-sdk-go-v2/service/sqs":      {"pkg/queue", "pkg/ops", "pkg/app", "pkg/lab/", "pkg/local/", "pkg/cmd/", "pkg/testkit/"},
	}
	for name, imported := range imports(t) {
		for _, path := range imported {
			if allowed, owned := owners[path]; owned &&
				!slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

func TestTheTopLevelIsTheCards(t *testing.T) {
	want := []string{"Makefile", "README.md", "events", "functions", "go.mod", "go.sum", "pkg", "samconfig.toml", "template.yaml"}
	tracked, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files").Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	got := map[string]bool{}
	for line := range strings.Lines(string(tracked)) {
		top, _, _ := strings.Cut(strings.TrimSpace(line), "/")
		if !strings.HasPrefix(top, ".") {
			got[top] = true
		}
	}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join("..", name)); err != nil {
			t.Errorf("%s is missing", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is no top-level entry of this project", name)
	}
}

// TestTheGlossaryNamesPackagesThatExist holds the glossary to 40 terms and to
// the tree.
func TestTheGlossaryNamesPackagesThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", ".github", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, glossary, _ := strings.Cut(string(text), "## Glossary")
	terms := 0
	for line := range strings.Lines(glossary) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		terms++
		owner := strings.Trim(cells[3], " `")
		if found, err := filepath.Glob(filepath.Join("..", owner, "*.go")); err != nil || len(found) == 0 {
			t.Errorf("%s: there is no package %s", strings.TrimSpace(cells[1]), owner)
		}
	}
	if terms < 20 || terms > 40 {
		t.Errorf("the glossary has %d terms, want 20 to 40", terms)
	}
}

// manuals are the Markdown documents of the project by their path from the root.
func manuals(t *testing.T) map[string]string {
	t.Helper()
	tracked, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	texts := map[string]string{}
	for _, name := range strings.Fields(string(tracked)) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err == nil {
			texts[name] = string(text)
		} else if !os.IsNotExist(err) { // deleted and not yet committed
			t.Fatal(err)
		}
	}
	return texts
}

// TestManualsNameTestsThatExist holds every PKG and RUN of the manuals to the
// tree: go test passes when no test matches.
func TestManualsNameTestsThatExist(t *testing.T) {
	var commands [][]string
	for _, text := range manuals(t) {
		commands = append(commands, regexp.MustCompile(`PKG=\./(\S+?)(?: RUN=(\w+))?[\s`+"`]").FindAllStringSubmatch(text, -1)...)
	}
	if len(commands) < 5 {
		t.Fatalf("found %d commands, want those that developers run", len(commands))
	}
	for _, c := range commands {
		dir, run := strings.TrimSuffix(c[1], "/..."), c[2]
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("PKG=./%s: there are no tests", c[1])
		}
		named := regexp.MustCompile(`(?m)^func Test\w*` + strings.TrimPrefix(run, "Test"))
		found := slices.ContainsFunc(files, func(file string) bool {
			source, err := os.ReadFile(file)
			return err == nil && named.Match(source)
		})
		if !found {
			t.Errorf("PKG=./%s RUN=%s: there is no such test", c[1], run)
		}
	}
}

// TestLinksOfManualsLeadSomewhere holds links between the manuals, and into the
// tree, to files and headings that exist. The portal names its pages by anchors, too.
func TestLinksOfManualsLeadSomewhere(t *testing.T) {
	texts := manuals(t)
	heading, notOfAnchors := regexp.MustCompile(`(?m)^#+ (.+)$`), regexp.MustCompile(`[^\w\- ]`)
	anchors := map[string]bool{}
	for name, text := range texts {
		for _, h := range heading.FindAllStringSubmatch(text, -1) {
			anchor := notOfAnchors.ReplaceAllString(strings.ToLower(h[1]), "")
			anchors[name+"#"+strings.ReplaceAll(anchor, " ", "-")] = true
		}
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for name, text := range texts {
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(path, "://") || strings.HasPrefix(path, "/") {
				continue
			}
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, l[1])
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !anchors[target+"#"+anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, l[1])
			}
		}
	}
}
