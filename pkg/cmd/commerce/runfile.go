package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// defaultData is the directory in which the local runner keeps its state.
const defaultData = ".local"

// RunFile is what the local runner tells the other commands of itself. It
// holds credentials of the local service only.
type RunFile struct {
	BaseURL            string `json:"baseUrl"`
	OrganizationID     string `json:"organizationId"`
	SiteID             string `json:"siteId"`
	ApplicationID      string `json:"applicationId"`
	JWT                string `json:"jwt"`
	APIKey             string `json:"apiKey"`
	DynamoDBEndpoint   string `json:"dynamodbEndpoint"`
	SQSEndpoint        string `json:"sqsEndpoint"`
	TableName          string `json:"tableName"`
	RecordsQueueURL    string `json:"recordsQueueUrl"`
	DeliveriesQueueURL string `json:"deliveriesQueueUrl"`
}

// errNoRunFile says that no local runner has been started with the directory.
var errNoRunFile = errors.New("no local runner has been started here")

func runFilePath(dataDir string) string { return filepath.Join(dataDir, "run.json") }

// ReadRunFile reads the directory's run file; errNoRunFile when there is none.
func ReadRunFile(dataDir string) (*RunFile, error) {
	text, err := os.ReadFile(runFilePath(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there; start commerce run first", errNoRunFile, runFilePath(dataDir))
	}
	if err != nil {
		return nil, fmt.Errorf("read the run file: %w", err)
	}
	var file RunFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read the run file %s: %w", runFilePath(dataDir), err)
	}
	return &file, nil
}

// WriteRunFile replaces the directory's run file in one step. Only its owner
// can read it.
func WriteRunFile(dataDir string, file *RunFile) error {
	text, err := json.Marshal(file, jsontext.Multiline(true))
	if err != nil {
		return fmt.Errorf("write the run file: %w", err)
	}
	if err := os.MkdirAll(dataDir, 0o755); err != nil {
		return fmt.Errorf("write the run file: %w", err)
	}
	next := runFilePath(dataDir) + ".next"
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the run file: %w", err)
	}
	if err := os.Rename(next, runFilePath(dataDir)); err != nil {
		return fmt.Errorf("write the run file: %w", err)
	}
	return nil
}
