package runner

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// demoRecords is a small shop. {{site}} stands for the demo site.
//
//go:embed demo.json
var demoRecords []byte

// makeDemo makes the demo application with its key once, and sends the demo
// records once, through the API and the queue like any other client.
func (r *run) makeDemo(ctx context.Context, base, jwt string) error {
	if r.state.APIKey == "" {
		if err := r.makeApplication(ctx, base, jwt); err != nil {
			return err
		}
	}
	if r.cfg.NoDemo || r.state.DemoSent {
		return nil
	}
	if err := r.sendDemo(ctx); err != nil {
		return err
	}
	r.state.DemoSent = true
	return r.state.save()
}

func (r *run) makeApplication(ctx context.Context, base, jwt string) error {
	var application struct {
		ID   string         `json:"id"`
		Rest jsontext.Value `json:",unknown"`
	}
	status, err := call(ctx, http.MethodPost, base+"/developers/applications", jwt, map[string]string{"name": "Demo"}, &application)
	if err != nil || status != http.StatusCreated {
		return fmt.Errorf("create the application: status %d, %w", status, err)
	}
	var created struct {
		Key  string         `json:"key"`
		Rest jsontext.Value `json:",unknown"`
	}
	status, err = call(ctx, http.MethodPost, base+"/developers/applications/"+application.ID+"/api-keys", jwt, map[string]string{"name": "Demo"}, &created)
	if err != nil || status != http.StatusCreated {
		return fmt.Errorf("create the API key: status %d, %w", status, err)
	}
	r.state.ApplicationID, r.state.APIKey = application.ID, created.Key
	return r.state.save()
}

// sendDemo sends the demo records in one message, silently: there is nobody
// yet who could have subscribed to their events.
func (r *run) sendDemo(ctx context.Context) error {
	text := bytes.ReplaceAll(demoRecords, []byte("{{site}}"), []byte(r.state.SiteID.String()))
	var records []map[string]jsontext.Value
	if err := json.Unmarshal(text, &records); err != nil {
		return fmt.Errorf("read the demo records: %w", err)
	}
	for _, record := range records {
		record["silent"] = jsontext.Value("true")
	}
	body, err := json.Marshal(map[string]any{"organizationId": r.state.OrganizationID, "records": records})
	if err != nil {
		return fmt.Errorf("encode the demo records: %w", err)
	}
	_, err = r.sqs().SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(r.made["RecordsQueue"].URL), MessageBody: aws.String(string(body)),
		MessageGroupId: aws.String(r.state.OrganizationID.String()),
	})
	if err != nil {
		return fmt.Errorf("send the demo records: %w", err)
	}
	return nil
}
