package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/commerce-integration/service/pkg/local/issuer"
)

const (
	issuerName = "https://issuer.commerce.local"
	audience   = "commerce"
	issuerFile = "issuer.pem"
)

func issuerConfig() issuer.Config {
	return issuer.Config{Issuer: issuerName, Audience: audience, Clock: time.Now}
}

// OpenIssuer opens the issuer of user tokens that a data folder keeps. It fails with [fs.ErrNotExist] when no service
// has been started there.
func OpenIssuer(dataDir string) (*issuer.Issuer, error) {
	path := filepath.Join(dataDir, issuerFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the issuer's key: %w", err)
	}
	i, err := issuer.Load(text, issuerConfig())
	if err != nil {
		return nil, damaged(path, err)
	}
	return i, nil
}

// openIssuer opens the folder's issuer, and makes one when there is none.
func openIssuer(f *folder) (*issuer.Issuer, error) {
	i, err := OpenIssuer(f.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if i, err = issuer.New(issuerConfig()); err != nil {
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

// serveKeys answers the issuer's JWK Set.
func serveKeys(i *issuer.Issuer) (http.HandlerFunc, error) {
	keys, err := i.JWKS()
	if err != nil {
		return nil, err
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(keys) // it fails only when the client has gone
	}, nil
}
