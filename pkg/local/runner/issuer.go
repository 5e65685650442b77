package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/commerce-integration/service/pkg/auth"
)

const (
	issuerName = "https://issuer.commerce.local"
	audience   = "commerce"
)

// OpenIssuer opens the issuer of user tokens that a data folder keeps, and
// makes one when there is none.
func OpenIssuer(dataDir string) (*auth.Issuer, error) {
	path := filepath.Join(dataDir, "issuer.pem")
	cfg := auth.IssuerConfig{Issuer: issuerName, Audience: audience, Clock: time.Now}
	text, err := os.ReadFile(path)
	if err == nil {
		issuer, err := auth.LoadIssuer(text, cfg)
		if err != nil {
			return nil, fmt.Errorf("%s is damaged: %w: restore it, or start afresh with --fresh", path, err)
		}
		return issuer, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the issuer's key: %w", err)
	}
	issuer, err := auth.NewIssuer(cfg)
	if err != nil {
		return nil, err
	}
	if text, err = issuer.PEM(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write the issuer's key: %w", err)
	}
	return issuer, nil
}

// serveKeys answers the issuer's JWK Set.
func serveKeys(issuer *auth.Issuer) (http.HandlerFunc, error) {
	keys, err := issuer.JWKS()
	if err != nil {
		return nil, err
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		// A client that went away is no error of ours.
		_, _ = w.Write(keys)
	}, nil
}
