// Package tableserver installs, starts and maintains the DynamoDB-compatible server of local runs and tests: dynoxide,
// or DynamoDB Local where dynoxide is not published. Only the pinned programs are installed, a kill of any of the
// processes loses no acknowledged write, writes do not slow down with the length of the stream, and on Linux no child
// outlives the caller. A loss of power may lose the last writes or damage the file, which the next start then says: the
// server does not wait for the disk. The caller makes the tables, reads their streams and decides which stream records
// may go.
package tableserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Version is the release of dynoxide that this package installs and whose database file it knows.
const Version = "1.2.1"

const dynamoDBLocalVersion = "2.6.1"

// A Kind is one of the table servers.
type Kind string

// Dynoxide is the server of choice: it starts in 20 ms and is several times faster. DynamoDB Local is AWS's own.
const (
	Dynoxide      Kind = "dynoxide"
	DynamoDBLocal Kind = "dynamodb-local"
)

// ErrNoPackage says that no table server is published for this operating system and processor.
var ErrNoPackage = errors.New("no pinned table server for this platform")

// A pin is what may be installed of one server. Its package manager fetches it with the user's own configuration
// (registry, mirror, proxy, cache).
type pin struct {
	platforms []string // in Go's names
	name      string   // for messages
	command   []string // fetches the package into its working directory
	needs     string   // how to get the command
	mend      string   // what to check when the command fails
	discard   string   // makes the package manager forget what it has cached
	byHand    string   // the way without the command; %s is the target
	fetched   string   // the path of the program in the working directory
	installed string   // its name in the folder of programs
	sum       string   // see checksum
}

//go:embed dynamodb-local.xml
var dynamoDBLocalPOM []byte

var pins = map[Kind]pin{ //nolint:gochecknoglobals // a table
	Dynoxide: {
		platforms: []string{"linux/amd64"},
		name:      "@dynoxide/linux-x64@" + Version,
		command: []string{
			"npm", "install", "--prefix", ".", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts",
			"--prefer-offline", "--loglevel=error", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000", "@dynoxide/linux-x64@" + Version,
		},
		needs:     "install Node.js, which includes it",
		mend:      "check the network and the output of npm config get registry",
		discard:   "npm cache clean --force",
		byHand:    "fetch it where there is a network (npm pack @dynoxide/linux-x64@" + Version + ") and put its file package/dynoxide at %s",
		fetched:   "node_modules/@dynoxide/linux-x64/dynoxide",
		installed: "dynoxide",
		sum:       "be909b7910d3fb552e85db10ef3c8ebae4bd35fee0f26dffdb6dfa5cc656426e",
	},
	DynamoDBLocal: {
		platforms: []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "windows/amd64"}, // those with an SQLite library in its package
		name:      "DynamoDB Local " + dynamoDBLocalVersion,
		command: []string{
			"mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
			"-DoutputDirectory=lib", "-DincludeScope=runtime",
		},
		needs:     "install Maven and Java 17 or newer",
		mend:      "check the network and the mirrors in Maven's settings.xml",
		discard:   "rm -r ~/.m2/repository/com/amazonaws",
		byHand:    "copy %s from a machine that has it",
		fetched:   "lib",
		installed: "dynamodb-local-" + dynamoDBLocalVersion,
		sum:       "db5ab19618ddcc40bcbb1dc0f96541e569b63f71d95012f0e2c80b647612c0a7",
	},
}

// KindFor returns the server for a platform in Go's names: dynoxide where it is published, else DynamoDB Local.
func KindFor(goos, goarch string) (Kind, error) {
	for _, kind := range []Kind{Dynoxide, DynamoDBLocal} {
		if slices.Contains(pins[kind].platforms, goos+"/"+goarch) {
			return kind, nil
		}
	}
	return "", fmt.Errorf("%w (%s/%s): run a DynamoDB-compatible server of your own and set AWS_ENDPOINT_URL_DYNAMODB to its URL",
		ErrNoPackage, goos, goarch)
}

// A Program is an installed table server.
type Program struct {
	kind Kind
	path string // of the executable, or of the folder of Java archives
}

// CacheDir is the folder of the user's cache in which runs without a data folder of their own, such as tests, share the
// installed server.
func CacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "commerce-integration", "dynoxide-"+Version), nil
}

// InstallShared puts the server for this platform into [CacheDir].
func InstallShared(ctx context.Context) (Program, error) {
	dir, err := CacheDir()
	if err != nil {
		return Program{}, err
	}
	return Install(ctx, dir)
}

// Install puts the server for this platform into dir, as [Kind.Install] does.
func Install(ctx context.Context, dir string) (Program, error) {
	kind, err := KindFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Program{}, err
	}
	return kind.Install(ctx, dir)
}

// Install puts the pinned program into dir. It does nothing when the program is there and its checksum is right;
// otherwise it fetches the package and verifies it before it moves it into place in one step. Concurrent calls are
// safe.
func (k Kind) Install(ctx context.Context, dir string) (Program, error) {
	want, known := pins[k]
	if !known {
		return Program{}, fmt.Errorf("unknown table server %q; use %s or %s", k, Dynoxide, DynamoDBLocal)
	}
	// The package manager runs in a directory of its own.
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Program{}, fmt.Errorf("finding the directory of the table server: %w", err)
	}
	program := Program{kind: k, path: filepath.Join(dir, want.installed)}
	if want.verify(program.path) == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Program{}, fmt.Errorf("making the directory of the table server: %w", err)
	}
	work, err := os.MkdirTemp(dir, "install-")
	if err != nil {
		return Program{}, fmt.Errorf("making a directory to install the table server in: %w", err)
	}
	defer os.RemoveAll(work)
	if err := want.fetch(ctx, work, program.path); err != nil {
		return Program{}, err
	}
	fresh := filepath.Join(work, filepath.FromSlash(want.fetched))
	if err := want.verify(fresh); err != nil {
		return Program{}, fmt.Errorf("%s fetched another %s than the pinned one and it was not used: run %s, %s, then try again: %w",
			want.command[0], want.name, want.discard, want.mend, err)
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return Program{}, fmt.Errorf("making the table server executable: %w", err)
	}
	if os.Rename(fresh, program.path) == nil || want.verify(program.path) == nil {
		return program, nil
	}
	// A folder with other files is in the way.
	if err := errors.Join(os.RemoveAll(program.path), os.Rename(fresh, program.path)); err != nil {
		return Program{}, fmt.Errorf("moving the table server into place: %w", err)
	}
	return program, nil
}

// fetch lets the package manager download the package into work. It names the target for those who fetch it by hand.
func (p *pin) fetch(ctx context.Context, work, target string) error {
	byHand := fmt.Sprintf(p.byHand, target)
	name := p.command[0]
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is needed once to fetch the table server %s: %s, or %s: %w", name, p.name, p.needs, byHand, err)
	}
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), dynamoDBLocalPOM, 0o600); err != nil {
		return fmt.Errorf("describing the package of the table server: %w", err)
	}
	cmd := exec.CommandContext(ctx, path, p.command[1:]...)
	cmd.Dir = work
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%s could not fetch %s: %s, then try again, or %s: %w: %s", name, p.name, p.mend, byHand, err, tail(output.String(), 600))
	}
	return nil
}

func (p *pin) verify(path string) error {
	got, err := checksum(path)
	if err != nil {
		return err
	}
	if got != p.sum {
		return fmt.Errorf("SHA-256 of %s: got %s, want %s", path, got, p.sum)
	}
	return nil
}

// checksum returns the SHA-256 of a file or, for a folder, of what "LC_ALL=C sha256sum *" prints in it.
func checksum(path string) (string, error) {
	sum := sha256.New()
	files, err := os.ReadDir(path)
	if err != nil { // not a folder
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		if _, err := io.Copy(sum, file); err != nil {
			return "", fmt.Errorf("reading the table server: %w", err)
		}
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	for _, file := range files {
		of, err := checksum(filepath.Join(path, file.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s  %s\n", of, file.Name())
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// tail returns the last n bytes of a child's output, for an error message.
func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) > n {
		s = "…" + strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}
