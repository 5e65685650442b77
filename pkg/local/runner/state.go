package runner

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	stateName = "state.json"
	// dataFormat is raised when the service can no longer read the data folders of the version before.
	dataFormat = 2
)

// state is the part of a data folder besides table and queues: the key of its service and the identities of its demo. It
// holds secrets of the local service only.
type state struct {
	Format         int      `json:"format"`
	ServiceKey     []byte   `json:"serviceKey"`
	OlderKey       []byte   `json:"olderServiceKey,omitempty"` // the service key before, after a rotation by hand
	SigningSecret  string   `json:"signingSecret"`             // what application tokens are signed with
	OrganizationID value.ID `json:"organizationId"`
	SiteID         value.ID `json:"siteId"`
	UserID         value.ID `json:"userId"`
	ApplicationID  string   `json:"applicationId"` // "" until the demo application is made
	ClientID       string   `json:"clientId"`
	ClientSecret   string   `json:"clientSecret"`
	APIKey         string   `json:"apiKey"`
	DemoSent       bool     `json:"demoSent"`

	path string
}

// openState reads the folder's state, or starts one.
func openState(f *folder) (*state, error) {
	s := &state{Format: dataFormat, path: f.path(stateName)}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if tables, _ := filepath.Glob(f.path("table/*.db")); len(tables) > 0 {
			return nil, fmt.Errorf("%s is gone: the data there cannot be read without it: restore it, or start with no data by --fresh", s.path)
		}
		s.ServiceKey = make([]byte, app.ServiceKeySize)
		if _, err := rand.Read(s.ServiceKey); err != nil {
			return nil, fmt.Errorf("make a service key: %w", err)
		}
		s.OrganizationID, s.SiteID, s.UserID = value.NewID(), value.NewID(), value.NewID()
		s.SigningSecret = rand.Text() + rand.Text() // 256 bits
		return s, s.save()
	}
	if err != nil {
		return nil, fmt.Errorf("read the runner's state: %w", err)
	}
	s.Format = 0 // of a folder that does not say it
	if err := json.Unmarshal(text, s); err != nil {
		return nil, damaged(s.path, err)
	}
	if s.Format != dataFormat {
		return nil, fmt.Errorf("another version of the service wrote %s: run that version, or start with no data by --fresh", f.dir)
	}
	none := value.ID{}
	if len(s.ServiceKey) != app.ServiceKeySize || s.SigningSecret == "" || s.OrganizationID == none || s.SiteID == none || s.UserID == none {
		return nil, damaged(s.path, errors.New("a key or an identity is missing"))
	}
	return s, nil
}

// serviceKeys are the keys as the functions' environment has them.
func (s *state) serviceKeys() string {
	text := base64.StdEncoding.EncodeToString(s.ServiceKey)
	if len(s.OlderKey) > 0 {
		text += " " + base64.StdEncoding.EncodeToString(s.OlderKey)
	}
	return text
}

// ReadServiceKeys reads the service keys of a data folder, the current one
// first.
func ReadServiceKeys(dataDir string) ([][]byte, error) {
	path := filepath.Join(dataDir, stateName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the service key: %w", err)
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, damaged(path, err)
	}
	keys := [][]byte{s.ServiceKey}
	if len(s.OlderKey) > 0 {
		keys = append(keys, s.OlderKey)
	}
	return keys, nil
}

func (s *state) save() error {
	if err := writeFile(s.path, s); err != nil {
		return fmt.Errorf("write the runner's state: %w", err)
	}
	return nil
}

// damaged is the error for a file that cannot be parsed.
func damaged(path string, err error) error {
	return fmt.Errorf("%s is damaged: %w: restore it, or start with no data by --fresh", path, err)
}
