package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

const (
	audience   = "commerce"
	issuerFile = "issuer.pem"
	clientID   = "portal" // of the portal at the issuer
)

// OpenIssuer opens the issuer of user tokens of the service that runs with a data folder. It fails with [ErrNotRunning]
// when none does.
func OpenIssuer(dataDir string) (*issuer.Issuer, error) {
	info, err := ReadInfo(dataDir)
	if err != nil {
		return nil, err
	}
	return loadIssuer(dataDir, info.Issuer)
}

// loadIssuer makes the issuer of a name with the key that a data folder keeps.
func loadIssuer(dataDir, name string) (*issuer.Issuer, error) {
	path := filepath.Join(dataDir, issuerFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the issuer's key: %w", err)
	}
	i, err := issuer.Load(text, issuer.Config{Issuer: name, Audience: audience, Clock: time.Now})
	if err != nil {
		return nil, damaged(path, err)
	}
	return i, nil
}

// openIssuer opens the folder's issuer under the name, and makes one when there is none.
func openIssuer(f *folder, name string) (*issuer.Issuer, error) {
	i, err := loadIssuer(f.dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if i, err = issuer.New(issuer.Config{Issuer: name, Audience: audience, Clock: time.Now}); err != nil {
		return nil, err
	}
	text, err := i.PEM()
	if err != nil {
		return nil, err
	}
	if err := replaceFile(f.path(issuerFile), text); err != nil {
		return nil, fmt.Errorf("write the issuer's key: %w", err)
	}
	return i, nil
}

// provider lets demo users sign in to the portal: three of the demo's organization, and three of one without records.
func (r *run) provider() *issuer.Provider {
	portal := baseURL(r.listener.Addr()) + "/portal"
	cfg := issuer.ProviderConfig{ClientID: clientID, Redirects: []string{portal, strings.Replace(portal, "127.0.0.1", "localhost", 1)}}
	add := func(shop string, organization value.ID) {
		for _, role := range []auth.Role{auth.Owner, auth.DeveloperRole, auth.Viewer} {
			name := string(role[:1]) + strings.ToLower(string(role[1:])) + " of " + shop
			grant := issuer.Grant{Subject: value.DeriveID(organization, name).String(), OrganizationID: organization, Roles: []auth.Role{role}}
			cfg.Users = append(cfg.Users, issuer.User{Name: name, Grant: grant})
		}
	}
	add("the tea shop", r.state.OrganizationID)
	add("an empty shop", value.DeriveID(r.state.OrganizationID, "an empty shop"))
	return issuer.NewProvider(r.servers.issuer, cfg)
}
