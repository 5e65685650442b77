package runner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/value"
)

// State is what a data folder keeps beside table and queues: the keys of its
// service and the identities of its demo. It holds secrets of the local
// service only.
type State struct {
	ServiceKey     []byte   `json:"serviceKey"`
	OrganizationID value.ID `json:"organizationId"`
	SiteID         value.ID `json:"siteId"`
	UserID         value.ID `json:"userId"`
	ApplicationID  string   `json:"applicationId"` // "" until the demo application is made
	APIKey         string   `json:"apiKey"`
	DemoSent       bool     `json:"demoSent"`

	path string
}

// openState reads the folder's state, or starts one.
func openState(dir string) (*State, error) {
	s := &State{path: filepath.Join(dir, "state.json")}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.ServiceKey = make([]byte, app.ServiceKeySize)
		if _, err := rand.Read(s.ServiceKey); err != nil {
			return nil, fmt.Errorf("make a service key: %w", err)
		}
		s.OrganizationID, s.SiteID, s.UserID = value.NewID(), value.NewID(), value.NewID()
		return s, s.save()
	}
	if err != nil {
		return nil, fmt.Errorf("read the runner's state: %w", err)
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): restore it, or start afresh with --fresh", s.path, err)
	}
	return s, nil
}

// save replaces the file in one step; only its owner can read it.
func (s *State) save() error {
	text, err := json.Marshal(s, jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("encode the runner's state: %w", err)
	}
	if err := os.WriteFile(s.path+".next", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the runner's state: %w", err)
	}
	if err := os.Rename(s.path+".next", s.path); err != nil {
		return fmt.Errorf("write the runner's state: %w", err)
	}
	return nil
}
