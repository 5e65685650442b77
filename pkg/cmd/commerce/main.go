// Command commerce runs the service locally and operates it: it makes tokens, signs in,
// imports, exports and erases records, receives webhooks and causes events,
// rebuilds and verifies the index of lists, seals secrets again after a rotation,
// and shows, redrives and replays what waits in dead letter queues and the park.
// The work itself is in package ops and the local packages; this one has the
// flags, the output and the exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/api/openapi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal is not caught and ends the process at once.
	context.AfterFunc(ctx, stop)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if code := exitCode(err); code != 0 {
		fmt.Fprintln(os.Stderr, "commerce:", err)
		os.Exit(code)
	}
}

// Exit codes. The commands that compare or look have those of diff. Every command
// exits with exitTrouble for a wrong command line.
const (
	exitFailed  = 1
	exitFound   = 1
	exitTrouble = 2
)

// exitError is an error with its own exit code.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// trouble makes an error exit with exitTrouble.
func trouble(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitTrouble, unlessInterrupted(err)}
}

// asCalled puts the program, as it was called, before the names of its commands,
// so that they can be pasted: .build/commerce in a clone, commerce from the PATH.
func asCalled(text string) string {
	return regexp.MustCompile(`\bcommerce `).ReplaceAllLiteralString(text, os.Args[0]+" ")
}

// version is what the binary knows of its origin: builds of a clone have no
// revision.
func version() string {
	release := "of no release"
	if built, ok := debug.ReadBuildInfo(); ok && built.Main.Version != "" && built.Main.Version != "(devel)" {
		release = built.Main.Version
	}
	return fmt.Sprintf("commerce %s, API %s, %s %s/%s", release, openapi.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of the program and of the API", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

// unlessInterrupted replaces the error of an interrupt. For a command that ends
// by itself an interrupt is a failure.
func unlessInterrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// exitCode returns exitTrouble for an error that no command returned: cobra found
// the command line wrong.
func exitCode(err error) int {
	if own := (*exitError)(nil); errors.As(err, &own) {
		return own.code
	}
	if err == nil {
		return 0
	}
	return exitTrouble
}

// finish has a command and those below it exit with exitFailed where they have no
// code of their own. A command that runs until
// it is interrupted ends without an error.
func finish(cmd *cobra.Command) {
	cmd.Long = asCalled(cmd.Long)
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			switch own := (*exitError)(nil); {
			case errors.Is(err, context.Canceled):
				return nil
			case err == nil || errors.As(err, &own):
				return err
			}
			return &exitError{exitFailed, err}
		}
	}
	for _, below := range cmd.Commands() {
		finish(below)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "commerce", Short: "Run and operate the Commerce Integration Service",
		Long: `Commerce runs and operates the Commerce Integration Service. A command exits with
0 when it is done, 1 when it failed, and 2 when the command line is wrong; those
that compare or look have their own codes, which their help tells.`,
		SilenceUsage: true, SilenceErrors: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: os.Args[0]},
	}
	root.AddCommand(newRunCommand(), newTokenCommand(), newLoginCommand(), newLogoutCommand(), newApplicationCommand(), newImportCommand(), newExportCommand(), newEraseCommand(),
		newListenCommand(), newTriggerCommand(), newReindexCommand(), newVerifyCommand(), newRedriveCommand(), newReplayCommand(),
		newRejectsCommand(), newResealCommand(), newStatusCommand(), newDashboardCommand(), newVersionCommand())
	finish(root)
	return root
}
