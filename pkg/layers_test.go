// Package pkg_test holds the tests about the tree as a whole.
package pkg_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/commerce-integration/service/"

// layers lists, for each package of the service, which others it may import.
// What is not listed here may import nothing of ours. "..." covers a folder.
var layers = map[string][]string{
	"pkg/base/value":         {},
	"pkg/base/fault":         {},
	"pkg/base/fold":          {},
	"pkg/base/pause":         {},
	"pkg/base/deadline":      {},
	"pkg/base/parallel":      {},
	"pkg/price":              {},
	"pkg/webhook/pattern":    {},
	"pkg/app/metric":         {},
	"pkg/base/retry":         {"pkg/base/fault", "pkg/base/pause"},
	"pkg/base/strictjson":    {"pkg/base/fault"},
	"pkg/base/sealed":        {},
	"pkg/sender":             {"pkg/base/value"},
	"pkg/commerce/receipt":   {"pkg/base/value"},
	"pkg/base/strictbinary":  {},
	"pkg/lists/columnar":     {"pkg/base/fold", "pkg/base/strictbinary"},
	"pkg/lists/segment":      {"pkg/base/strictbinary", "pkg/lists/columnar"},
	"pkg/delivery/outbound":  {},
	"pkg/base/sdkhttp":       {},
	"pkg/delivery/snstopic":  {"pkg/commerce"},
	"pkg/delivery/arntarget": {"pkg/base/value", "pkg/delivery/outbound", "pkg/webhook"},

	"pkg/lists":         {"pkg/base/value", "pkg/base/fault", "pkg/base/fold", "pkg/lists/columnar"},
	"pkg/commerce":      {"pkg/base/value", "pkg/base/fault", "pkg/base/strictjson", "pkg/lists/columnar", "pkg/base/fold", "pkg/lists"},
	"pkg/account":       {"pkg/base/value", "pkg/base/fault", "pkg/base/strictjson"},
	"pkg/webhook":       {"pkg/base/value", "pkg/base/fault", "pkg/webhook/pattern", "pkg/base/strictjson", "pkg/base/sealed", "pkg/commerce", "pkg/account", "pkg/lists", "pkg/lists/columnar"},
	"pkg/index":         {"pkg/base/strictbinary", "pkg/base/value", "pkg/base/fault", "pkg/commerce", "pkg/webhook", "pkg/lists/columnar", "pkg/lists/segment"},
	"pkg/auth/apptoken": {"pkg/base/value", "pkg/base/fault"},
	"pkg/auth":          {"pkg/base/value", "pkg/base/fault", "pkg/account", "pkg/auth/apptoken"},

	"pkg/api/audit":       {"pkg/base/value", "pkg/auth"},
	"pkg/api/idempotency": {"pkg/base/value", "pkg/base/fault", "pkg/base/sealed"},

	"pkg/auth/ratelimit":        {"pkg/base/fault", "pkg/auth/ratelimit/window"},
	"pkg/auth/ratelimit/window": {},

	"pkg/api":        {"pkg/base/value", "pkg/base/fault", "pkg/base/strictjson", "pkg/auth", "pkg/api/audit", "pkg/auth/ratelimit", "pkg/api/idempotency", "pkg/lists", "pkg/lists/columnar"},
	"pkg/api/portal": {"pkg/base/fault", "pkg/api"},
	"pkg/api/docs":   {"pkg/base/fault", "pkg/api"},

	"pkg/api/docs/markdown": {},

	"pkg/api/developers": {"pkg/base/value", "pkg/base/fault", "pkg/base/strictjson", "pkg/auth", "pkg/api/audit", "pkg/account", "pkg/api/idempotency", "pkg/lists", "pkg/lists/columnar", "pkg/api"},
	"pkg/api/oauth":      {"pkg/base/value", "pkg/base/fault", "pkg/auth", "pkg/api/audit", "pkg/account", "pkg/auth/apptoken", "pkg/api"},
	"pkg/api/webhooks":   {"pkg/base/value", "pkg/base/fault", "pkg/base/strictjson", "pkg/auth", "pkg/api/audit", "pkg/account", "pkg/api/idempotency", "pkg/commerce", "pkg/webhook", "pkg/lists", "pkg/lists/columnar", "pkg/api"},
	"pkg/api/receipts":   {"pkg/base/value", "pkg/base/fault", "pkg/auth", "pkg/commerce", "pkg/commerce/receipt", "pkg/api"},
	"pkg/api/records":    {"pkg/base/pause", "pkg/base/value", "pkg/base/fault", "pkg/auth", "pkg/commerce", "pkg/lists", "pkg/lists/columnar", "pkg/index", "pkg/api"},

	"pkg/dynamo":              {"pkg/base/parallel", "pkg/base/retry", "pkg/base/pause", "pkg/base/value", "pkg/base/fault", "pkg/account", "pkg/auth/apptoken", "pkg/commerce", "pkg/webhook", "pkg/index", "pkg/auth/ratelimit/window", "pkg/api/idempotency", "pkg/sender", "pkg/commerce/receipt"},
	"pkg/dynamo/chart":        {},
	"pkg":                     {},
	"pkg/testkit/queuetest":   {"..."},
	"pkg/queue":               {"pkg/base/parallel", "pkg/base/pause", "pkg/base/value", "pkg/sender", "pkg/commerce/receipt", "pkg/base/fault", "pkg/commerce", "pkg/webhook"},
	"pkg/ingest":              {"pkg/base/parallel", "pkg/base/deadline", "pkg/base/value", "pkg/sender", "pkg/commerce/receipt", "pkg/base/fault", "pkg/commerce", "pkg/dynamo"},
	"pkg/index/indexer":       {"pkg/base/value", "pkg/base/fault", "pkg/commerce", "pkg/webhook", "pkg/lists/columnar", "pkg/index"},
	"pkg/index/compactor":     {"pkg/base/value", "pkg/base/fault", "pkg/lists/columnar", "pkg/lists/segment", "pkg/index"},
	"pkg/index/views":         {"pkg/base/deadline", "pkg/base/pause", "pkg/base/value", "pkg/base/fault", "pkg/lists", "pkg/lists/columnar", "pkg/lists/segment", "pkg/index"},
	"pkg/ops":                 {"pkg/base/pause", "pkg/price", "pkg/base/value", "pkg/sender", "pkg/commerce/receipt", "pkg/account", "pkg/base/sealed", "pkg/base/fault", "pkg/commerce", "pkg/webhook", "pkg/lists/columnar", "pkg/lists/segment", "pkg/index", "pkg/index/indexer", "pkg/index/compactor", "pkg/dynamo", "pkg/dynamo/chart", "pkg/queue", "pkg/delivery/dispatcher"},
	"pkg/delivery/counter":    {"pkg/base/parallel", "pkg/base/retry", "pkg/base/value", "pkg/base/fault", "pkg/webhook", "pkg/dynamo"},
	"pkg/delivery/dispatcher": {"pkg/base/parallel", "pkg/base/deadline", "pkg/base/value", "pkg/base/fault", "pkg/account", "pkg/commerce", "pkg/webhook", "pkg/dynamo", "pkg/queue"},
	"pkg/delivery/worker":     {"pkg/base/parallel", "pkg/base/deadline", "pkg/base/retry", "pkg/base/pause", "pkg/base/value", "pkg/base/fault", "pkg/account", "pkg/commerce", "pkg/webhook", "pkg/delivery/arntarget", "pkg/delivery/outbound", "pkg/base/sealed", "pkg/queue"},
	"pkg/delivery/sweeper":    {"pkg/base/parallel", "pkg/base/deadline", "pkg/base/retry", "pkg/base/value", "pkg/base/fault", "pkg/account", "pkg/commerce", "pkg/webhook", "pkg/index", "pkg/dynamo", "pkg/queue"},

	"pkg/ops/importer":          {"pkg/base/value", "pkg/base/fault", "pkg/base/strictjson", "pkg/commerce"},
	"pkg/cmd/commerce/listener": {"pkg/base/value", "pkg/webhook", "pkg/commerce"},
	"pkg/api/openapi":           {"pkg/base/value", "pkg/base/fault", "pkg/commerce", "pkg/account", "pkg/auth", "pkg/api"},

	"pkg/app/state":         {},
	"pkg/local/template":    {"pkg/app/state"},
	"pkg/local/gateway":     {"pkg/local/template"},
	"pkg/local/child":       {},
	"pkg/local/filelock":    {},
	"pkg/local/apiclient":   {},
	"pkg/local/issuer":      {"pkg/base/value", "pkg/auth"},
	"pkg/local/tableserver": {"pkg/base/pause", "pkg/local/child", "pkg/local/filelock"},
	"pkg/local/queueserver": {"pkg/local/filelock"},
	"pkg/local/eventsource": {"pkg/base/pause"},
	"pkg/local/faults":      {},
	"pkg/local/clocks":      {},
	"pkg/local/processes":   {"pkg/local/child"},
	"pkg/lab/meter":         {"pkg/dynamo/chart"},
	"pkg/local/provision":   {"pkg/local/template"},
	"pkg/lab/workload":      {"..."},
	"pkg/lab/bench":         {"..."},
	"pkg/lab/chaos":         {"..."},

	"pkg/local/template/alarmtest": {"pkg/local/template"},
	"pkg/testkit/cputime":          {},

	"pkg/app":                 {"..."},
	"pkg/local/runner":        {"..."},
	"pkg/testkit/dynamotest":  {"..."},
	"pkg/testkit/servicetest": {"..."},
	"pkg/testkit/leaks":       {},
	"pkg/cmd/commerce":        {"..."},
	"pkg/cmd/lab":             {"..."},
	"functions/authorizer":    {"pkg/app"},
	"functions/developers":    {"pkg/app"},
	"functions/webhooks":      {"pkg/app"},
	"functions/api":           {"pkg/app"},
	"functions/portal":        {"pkg/app", "pkg/api/docs/markdown"},
	"functions/receipts":      {"pkg/app"},
	"functions/ingest":        {"pkg/app"},
	"functions/dispatcher":    {"pkg/app"},
	"functions/indexer":       {"pkg/app"},
	"functions/worker":        {"pkg/app"},
	"functions/sweeper":       {"pkg/app"},
}

// awsUsers are the only packages that may import AWS modules.
var awsUsers = []string{
	"pkg/dynamo", "pkg/queue", "pkg/base/sdkhttp", "pkg/delivery/snstopic", "pkg/delivery/arntarget", "pkg/ops", "pkg/app", "pkg/lab/", "pkg/local/", "pkg/cmd/", "pkg/testkit/", "functions/",
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

func TestPackagesImportOnlyWhatIsBelowThem(t *testing.T) {
	for name, imported := range imports(t) {
		allowed, known := layers[name]
		if !known {
			t.Errorf("%s has no place in the layers", name)
			continue
		}
		for _, path := range imported {
			ours, isOurs := strings.CutPrefix(path, module)
			if isOurs && !slices.Contains(allowed, ours) && !slices.Contains(allowed, "...") {
				t.Errorf("%s imports %s, which is not below it", name, ours)
			}
		}
	}
}

// TestFoldersImportInNoCircle looks at the folders below pkg as a reader of the
// tree does; what only tests import is left out.
func TestFoldersImportInNoCircle(t *testing.T) {
	arrows := map[string]map[string]bool{}
	folder := func(name string) string {
		return strings.Join(strings.SplitN(name, "/", 3)[:min(2, strings.Count(name, "/")+1)], "/")
	}
	for name, imported := range imports(t) {
		if strings.HasSuffix(name, "test") {
			continue
		}
		from := folder(name)
		for _, path := range imported {
			if ours, isOurs := strings.CutPrefix(path, module); isOurs && folder(ours) != from {
				if arrows[from] == nil {
					arrows[from] = map[string]bool{}
				}
				arrows[from][folder(ours)] = true
			}
		}
	}
	// A folder that imports nothing of the rest is taken away, until none is left.
	for removed := true; removed; {
		removed = false
		for from, to := range arrows {
			for folder := range to {
				if arrows[folder] == nil {
					delete(to, folder)
				}
			}
			if len(to) == 0 {
				delete(arrows, from)
				removed = true
			}
		}
	}
	for from, to := range arrows {
		t.Errorf("%s is in a circle, or above one, with %v", from, slices.Sorted(maps.Keys(to)))
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
// tree, to files and headings that exist.
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
			} else if anchor != "" && !anchors[target+"#"+anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, l[1])
			}
		}
	}
}
