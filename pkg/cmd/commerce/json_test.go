package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/apiclient"
)

// TestEveryCommandWithAResultPrintsItForPrograms names the commands without --json.
func TestEveryCommandWithAResultPrintsItForPrograms(t *testing.T) {
	t.Parallel()
	without := map[string]string{
		"commerce run": "its data folder has run.json", "commerce openapi": "it prints JSON", "commerce dashboard": "it prints JSON", "commerce version": "it is one line",
	}
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if has := cmd.Flags().Lookup("json") != nil; !cmd.HasSubCommands() && has == (without[path] != "") &&
			!strings.HasPrefix(path, "commerce completion") && cmd.Name() != "help" {
			t.Errorf("%s: --json is there: %t", path, has)
		}
		for _, below := range cmd.Commands() {
			check(below)
		}
	}
	check(newRootCommand())
}

// object runs a command with --json and reads the one object that it prints.
func (s *service) object(t *testing.T, into any, args ...string) {
	t.Helper()
	stdout := s.commerce(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(stdout), into, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%q printed %s: %v", args, stdout, err)
	}
}

func TestResultsForProgramsAreThoseForPeople(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	var token struct {
		Token          string   `json:"token"`
		OrganizationID string   `json:"organizationId"`
		UserID         value.ID `json:"userId"`
		Roles          []string `json:"roles"`
		ExpiresIn      int      `json:"expiresIn"`
	}
	s.object(t, &token, "token", "--organization", s.OrganizationID, "--roles", "viewer", "--ttl", "90s")
	watched.Made(token.Token)
	if owner, err := organizationOf(t.Context(), apiclient.New(s.BaseURL, token.Token)); err != nil || owner.String() != s.OrganizationID {
		t.Errorf("the token is of %s, %v; want %s", owner, err, s.OrganizationID)
	}
	if token.OrganizationID != s.OrganizationID || fmt.Sprint(token.Roles) != "[VIEWER]" || token.ExpiresIn != 90 {
		t.Errorf("token: %+v", token)
	}

	var application struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		RateLimit int    `json:"rateLimit"`
	}
	s.object(t, &application, "application", "set", s.ApplicationID, "--organization", s.OrganizationID, "--rate-limit", "999999")
	if application.ID != s.ApplicationID || application.RateLimit != 999_999 {
		t.Errorf("application set: %+v", application)
	}

	folder := t.TempDir()
	products := filepath.Join(folder, "products.csv")
	if err := os.WriteFile(products, []byte("sku,name\nA,Tea\nB,Pot\nB,Cup\nC,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	imported := []string{"import", "--organization", s.OrganizationID, "--kind", "product", "--id-from", "sku", "--key", s.APIKey, "--url", s.BaseURL, "--queue-url", s.RecordsQueueURL, products}
	for _, args := range [][]string{append(imported, "--dry-run"), imported} {
		stdout, stderr, err := runCommand(t.Context(), append(args, "--json", "--data", s.data)...)
		want := fmt.Sprintf(`{"format":"csv","dryRun":%t,"accepted":3,"before":0,"kinds":{"product":3},"repeated":1,"rejected":1,`+
			`"sharedSkus":[],"notImported":[],"reasons":{"validation_failed":1},"rejections":["products.csv:5: validation_failed: name is required"]}`+"\n", len(args) > len(imported))
		if stdout != want || err == nil || !strings.Contains(stderr, "1 of 4 records were rejected") {
			t.Errorf("%q printed\n%s%s%v; want\n%s", args, stdout, stderr, err, want)
		}
	}

	var scope scopeResult
	s.object(t, &scope, "reindex", "--organization", s.OrganizationID, "--list", "products")
	if fmt.Sprint(scope.Organizations, scope.Lists) != "["+s.OrganizationID+"] [products]" {
		t.Errorf("reindex: %+v", scope)
	}
	var verified struct {
		scopeResult `json:",embed"`
		Differences []jsontext.Value `json:"differences"`
	}
	s.object(t, &verified, "verify", "--organization", s.OrganizationID)
	if len(verified.Lists) != 7 || verified.Differences == nil || len(verified.Differences) > 0 {
		t.Errorf("verify: %+v", verified)
	}
}
