// Command commerce runs the service locally and operates it: it makes tokens,
// imports records, receives webhooks, makes the index of lists again and
// compares it with the table, moves messages back from the dead-letter queues,
// and does again what was parked or refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal is not caught any more and ends the process at once.
	context.AfterFunc(ctx, stop)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if code := exitCode(err); code != 0 {
		fmt.Fprintln(os.Stderr, "commerce:", err)
		os.Exit(code)
	}
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// exitCode is 1 for an error that names none. The end of a command that runs
// until it is interrupted is no error.
func exitCode(err error) int {
	if own := (*exitError)(nil); errors.As(err, &own) {
		return own.code
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return 0
	}
	return 1
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "commerce", Short: "Run and operate the Commerce Integration Service",
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(newRunCommand(), newTokenCommand(), newApplicationCommand(), newImportCommand(),
		newListenCommand(), newReindexCommand(), newVerifyCommand(), newRedriveCommand(), newReplayCommand(),
		newRejectsCommand(), newStatusCommand(), newOpenAPICommand())
	return root
}
