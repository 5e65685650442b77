package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/ops"
)

// login is what a user's sign-in at a service leaves in a file of the user's.
type login struct {
	ClientID value.ID      `json:"clientId"`
	Tokens   *oauth2.Token `json:"tokens"` // nil: nobody has signed in

	base string // URL of the service
	file ops.Checkpoint
}

func loginAt(base string) (*login, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("keep the sign-in: %w", err)
	}
	base = strings.TrimSuffix(base, "/")
	l := &login{base: base, file: ops.CheckpointOf(filepath.Join(dir, "commerce"), "login", base)}
	return l, l.file.Load(l)
}

func (l *login) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: l.ClientID.String(),
		Endpoint: oauth2.Endpoint{AuthURL: l.base + "/portal/authorize", TokenURL: l.base + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams},
	}
}

func newLoginCommand() *cobra.Command {
	var client value.ID
	cmd := &cobra.Command{
		Use: "login URL --client-id UUID", Short: "Sign in at a service, to export and listen without a key", Args: cobra.ExactArgs(1),
		Long: `Login opens the page of a service on which you sign in and choose what this program
may read in your name. From then on, for 30 days or until commerce logout, commerce
export --url and commerce listen --remote need no API key. Commerce import needs a
token: nobody can grant records:write.

An owner makes the client, once for the organization: an application whose
redirectUri is http://127.0.0.1/ and whose type is PUBLIC.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loginAt(args[0])
			if err != nil {
				return err
			}
			if u, err := url.Parse(l.base); err != nil || u.Scheme != "https" && !isLoopback(u.Hostname()) {
				return wrongUsage("%s: must be the URL of a service and begin with https://", args[0])
			}
			before := *l
			l.ClientID = client
			if err := l.signIn(cmd.Context(), cmd.ErrOrStderr()); err != nil {
				return unlessInterrupted(err)
			}
			_ = before.revoke(cmd.Context()) // a user has so many grants to an application
			return nil
		},
	}
	cmd.Flags().Var(idFlag{&client}, "client-id", "clientId of the application (required)")
	_ = cmd.MarkFlagRequired("client-id")
	return cmd
}

func newLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout URL", Short: "Take back what login was granted", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := loginAt(args[0])
			if err != nil {
				return err
			}
			if err := l.revoke(cmd.Context()); passes(err) {
				return fmt.Errorf("you are still signed in: %w", err)
			}
			return l.file.Remove()
		},
	}
}

// signIn gets tokens by what the user decides in a browser, which comes to a port of
// this machine (RFC 8252, section 7.3), and keeps them.
func (l *login) signIn(ctx context.Context, errOut io.Writer) error {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the browser: %w", err)
	}
	defer socket.Close()
	verifier, state, decided := oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), make(chan url.Values)
	go func() { _ = http.Serve(socket, decision(state, decided)) }() // ends with the socket
	cfg := l.config()
	cfg.RedirectURL = "http://" + socket.Addr().String() + "/"
	page := cfg.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier))
	fmt.Fprintf(errOut, "decide in the browser, at %s\n", page)
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	_ = exec.CommandContext(context.WithoutCancel(ctx), opener, page).Start() // without it the user opens the page
	var answer url.Values
	select {
	case answer = <-decided:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case answer.Get("iss") != l.base: // RFC 9207
		return fmt.Errorf("the answer is one of %q, not of %s", answer.Get("iss"), l.base)
	case answer.Get("error") != "":
		return fmt.Errorf("%s: %s", visible(answer.Get("error")), visible(answer.Get("error_description")))
	}
	if l.Tokens, err = cfg.Exchange(withClient(ctx), answer.Get("code"), oauth2.VerifierOption(verifier)); err != nil {
		return err
	}
	if err := l.file.Save(l); err != nil {
		return err
	}
	fmt.Fprintf(errOut, "signed in at %s: %v\n", l.base, l.Tokens.Extra("scope"))
	return nil
}

// decision answers the browser where the service sends it, and passes the query on.
func decision(state string, decided chan<- url.Values) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		const text = "You can close this page and go on in the terminal.\n"
		if r.URL.Query().Get("state") != state {
			http.NotFound(w, r) // it is somebody else's
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush() // before the program may end
		decided <- r.URL.Query()
	}
}

// Token reads the access token from the file, where another command may have put a
// newer one, and refreshes it when it has expired. Commands that do so at once get the
// same tokens (account.RefreshOverlap).
func (l *login) Token() (*oauth2.Token, error) {
	now, err := loginAt(l.base)
	if err != nil || now.Tokens.Valid() {
		return now.Tokens, err
	}
	if now.Tokens, err = now.config().TokenSource(withClient(context.Background()), now.Tokens).Token(); err != nil {
		return nil, fmt.Errorf("%w: sign in by commerce login", err)
	}
	return now.Tokens, now.file.Save(now)
}

// withClient has tokens asked for by a client that waits for a while, and sends nothing
// where a redirection leads.
func withClient(ctx context.Context) context.Context {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: 15 * time.Second, CheckRedirect: stay})
}

// revoke ends the grant of the tokens, if there are any.
func (l *login) revoke(ctx context.Context) error {
	if l.Tokens == nil {
		return nil
	}
	form := url.Values{"client_id": {l.ClientID.String()}, "token": {l.Tokens.RefreshToken}}
	return apiclient.New(l.base, "").SendForm(ctx, "/oauth/revoke", form)
}
