package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// infoName is the file by which other commands find a running service.
const infoName = "run.json"

// Info has the addresses of a running service and credentials for it. It holds credentials of the local service only.
type Info struct {
	BaseURL                string `json:"baseUrl"`
	Issuer                 string `json:"issuer"` // of users' tokens
	OrganizationID         string `json:"organizationId"`
	SiteID                 string `json:"siteId"`
	ApplicationID          string `json:"applicationId"`
	ClientID               string `json:"clientId"`
	ClientSecret           string `json:"clientSecret"`
	JWT                    string `json:"jwt"`
	APIKey                 string `json:"apiKey"`
	DynamoDBEndpoint       string `json:"dynamodbEndpoint"`
	SQSEndpoint            string `json:"sqsEndpoint"`
	TableName              string `json:"tableName"`
	RecordsQueueURL        string `json:"recordsQueueUrl"`
	ImportsQueueURL        string `json:"importsQueueUrl"`
	DeliveriesQueueURL     string `json:"deliveriesQueueUrl"`
	SlowDeliveriesQueueURL string `json:"slowDeliveriesQueueUrl"`
	IndexJobsQueueURL      string `json:"indexJobsQueueUrl"`
}

// ErrNotRunning says that no service runs with a data folder.
var ErrNotRunning = errors.New("no local service runs here")

// ReadInfo reads run.json of a data folder. It fails with [ErrNotRunning] when no service runs there or it does not answer
// yet.
func ReadInfo(dataDir string) (*Info, error) {
	path := filepath.Join(dataDir, infoName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there; start it by make run, or name its data folder with --data", ErrNotRunning, path)
	}
	if err != nil {
		return nil, fmt.Errorf("find the local service: %w", err)
	}
	var info Info
	if err := json.Unmarshal(text, &info); err != nil {
		return nil, fmt.Errorf("find the local service: %s: %w", path, err)
	}
	return &info, nil
}

// WriteInfo replaces the folder's file in one step.
func WriteInfo(dataDir string, info *Info) error {
	if err := writeFile(filepath.Join(dataDir, infoName), info); err != nil {
		return fmt.Errorf("write where the service is: %w", err)
	}
	return nil
}

// writeFile replaces a JSON file in one step.
func writeFile(path string, content any) error {
	text, err := json.Marshal(content, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return replaceFile(path, append(text, '\n'))
}

// replaceFile writes a file in one step, so that nobody reads half of it. Only its owner can read it.
func replaceFile(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
