// Package tableserver installs, starts and tends dynoxide, the DynamoDB-compatible server of local runs and tests.
// It promises that only the pinned binary is installed, that what the server acknowledged survives a kill of any of the
// processes, that writes do not slow down with the length of the stream, and that on Linux no child outlives the caller.
// Tables, their stream consumers and the decision which stream records may go are left to the caller.
package tableserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Version is the release of dynoxide that this package installs and whose database file it knows.
const Version = "1.2.1"

// maxBinary bounds what is unpacked from the package, in bytes.
const maxBinary = 64 << 20

// ErrNoPackage says that no pinned binary exists for this operating system and processor.
var ErrNoPackage = errors.New("no pinned table server for this platform")

// A pin is the one package that may be installed on a platform.
type pin struct {
	name      string // npm package
	integrity string // of the tarball, in npm's own notation
	binary    string // hex SHA-256 of the executable inside it
}

// pinFor returns the pin for a platform in Go's names.
func pinFor(goos, goarch string) (pin, error) {
	pins := map[string]pin{
		"linux/amd64": {
			name:      "@dynoxide/linux-x64",
			integrity: "sha512-sBHqlxJ9ANkLluFkYRfd5r8Y0ApFew4FhOrlhgRAgD4XzEoFOukEo1nuBTQ1+jTtofqwn4NWQ2k0Tn5mNTjgUg==",
			binary:    "be909b7910d3fb552e85db10ef3c8ebae4bd35fee0f26dffdb6dfa5cc656426e",
		},
	}
	if known, ok := pins[goos+"/"+goarch]; ok {
		return known, nil
	}
	return pin{}, fmt.Errorf("%w (%s/%s): run a DynamoDB-compatible server of your own and set AWS_ENDPOINT_URL_DYNAMODB to its URL",
		ErrNoPackage, goos, goarch)
}

// Install puts the pinned binary into dir and returns its path. It does nothing when the binary is there and its
// checksum is right; otherwise npm fetches the package with the user's own configuration (registry, proxy, cache), and
// the tarball and the binary are verified before the binary is moved into place in one step. Concurrent calls are safe.
func Install(ctx context.Context, dir string) (string, error) {
	want, err := pinFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	// npm runs in a directory of its own.
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("finding the directory of the table server: %w", err)
	}
	binary := filepath.Join(dir, "dynoxide")
	if verifyBinary(binary, want) == nil {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the directory of the table server: %w", err)
	}
	work, err := os.MkdirTemp(dir, "install-")
	if err != nil {
		return "", fmt.Errorf("making a directory to install the table server in: %w", err)
	}
	defer os.RemoveAll(work)

	tarball, err := pack(ctx, want, work, binary)
	if err != nil {
		return "", err
	}
	fresh := filepath.Join(work, "dynoxide")
	if err := unpack(tarball, want, fresh); err != nil {
		return "", err
	}
	if err := verifyBinary(fresh, want); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, binary); err != nil {
		return "", fmt.Errorf("moving the table server into place: %w", err)
	}
	return binary, nil
}

// pack lets npm download the package into work and returns the tarball's path.
func pack(ctx context.Context, want pin, work, binary string) (string, error) {
	spec := want.name + "@" + Version
	byHand := fmt.Sprintf("or fetch it where there is a network (npm pack %s) and put its file package/dynoxide at %s", spec, binary)
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("npm is needed once to fetch the table server: install Node.js, which brings it, %s: %w", byHand, err)
	}
	cmd := exec.CommandContext(ctx, npm, "pack", spec, "--pack-destination", work,
		"--ignore-scripts", "--prefer-offline", "--loglevel=error", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
	cmd.Dir = work
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("npm could not fetch %s: check the network and the output of npm config get registry, then try again, %s: %w: %s",
			spec, byHand, err, tail(said.String(), 600))
	}
	found, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("npm pack %s left %d tarballs in %s, one was expected", spec, len(found), work)
	}
	return found[0], nil
}

// unpack verifies the tarball and writes the executable in it to target.
func unpack(tarball string, want pin, target string) error {
	data, err := os.ReadFile(tarball)
	if err != nil {
		return fmt.Errorf("reading the package of the table server: %w", err)
	}
	sum := sha512.Sum512(data)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != want.integrity {
		return fmt.Errorf("the registry gave another %s@%s than the pinned one and it was not used: got %s, want %s: "+
			"run npm cache clean --force, check the output of npm config get registry, then try again", want.name, Version, got, want.integrity)
	}
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("opening the package of the table server: %w", err)
	}
	for files := tar.NewReader(gz); ; {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("looking for package/dynoxide in %s@%s: %w", want.name, Version, err)
		}
		if header.Name == "package/dynoxide" {
			return writeExecutable(target, io.LimitReader(files, maxBinary))
		}
	}
}

func writeExecutable(target string, from io.Reader) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("writing the table server: %w", err)
	}
	_, err = io.Copy(file, from)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return fmt.Errorf("writing the table server: %w", err)
	}
	return nil
}

func verifyBinary(path string, want pin) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return fmt.Errorf("reading the table server: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.binary {
		return fmt.Errorf("the table server at %s is not the pinned one: got SHA-256 %s, want %s", path, got, want.binary)
	}
	return nil
}

// tail returns the last n bytes of what a child said, for an error message.
func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) > n {
		s = "…" + strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}
