package snstopic_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/snstopic"
	"github.com/commerce-integration/service/pkg/webhook"
)

// published returns what a topic is sent for an alert, and the error.
func published(t *testing.T, arn string, status int, alert *commerce.WebhookPayload) (url.Values, error) {
	t.Helper()
	var form url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		form = r.PostForm
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>`))
	}))
	defer server.Close()
	client := sns.New(sns.Options{
		BaseEndpoint: &server.URL, Region: "eu-central-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	err := snstopic.New(client, arn).Publish(t.Context(), alert)
	return form, err
}

func TestAnAlertIsPublishedWithItsIdentifiers(t *testing.T) {
	e := webhook.Endpoint{}
	alert, err := e.AlertEvent(webhook.Alert{Type: commerce.EventEndpointFailing, At: 1795336541242}, &e, webhook.Counters{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := alert.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const arn = "arn:aws:sns:eu-central-1:222222222222:alerts"
	for _, topic := range []struct{ arn, deduplication, group string }{
		{arn, "", ""},
		{arn + ".fifo", alert.ID.String(), alert.ObjectID.String()},
	} {
		form, err := published(t, topic.arn, http.StatusOK, alert)
		if err != nil || form.Get("TopicArn") != topic.arn || form.Get("Message") != string(body) ||
			form.Get("Subject") != "endpoint.failing "+alert.ObjectID.String() ||
			form.Get("MessageDeduplicationId") != topic.deduplication || form.Get("MessageGroupId") != topic.group {
			t.Errorf("%s: %v, %v", topic.arn, form, err)
		}
		attributes := map[string]string{}
		for _, entry := range []string{"1", "2", "3"} {
			attribute := "MessageAttributes.entry." + entry
			attributes[form.Get(attribute+".Name")] = form.Get(attribute + ".Value.StringValue")
		}
		if attributes["eventId"] != alert.ID.String() || attributes["type"] != alert.Type || attributes["organizationId"] != alert.OrganizationID.String() {
			t.Errorf("attributes %v", attributes)
		}
	}
	if _, err := published(t, arn, http.StatusForbidden, alert); err == nil {
		t.Error("no error although AWS refused it")
	}
}
