// Command commerce runs the service locally and operates it: it makes tokens,
// imports records, receives webhooks and moves messages back from the
// dead-letter queues.
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
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "commerce:", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "commerce", Short: "Run and operate the Commerce Integration Service",
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(newRunCommand(), newTokenCommand(), newApplicationCommand(), newImportCommand(),
		newListenCommand(), newRedriveCommand(), newOpenAPICommand())
	return root
}
