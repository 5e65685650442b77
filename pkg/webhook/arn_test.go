package webhook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestOnlyARNsWithTheOrganizationsNameAreTaken(t *testing.T) {
	const org = "018f0000-0000-7000-8000-000000000001"
	const other = "018f0000-0000-7000-8000-000000000002"
	others, all := webhook.ARNRules{Permitted: true, Except: "111111111111"}, webhook.ARNRules{Permitted: true}
	for _, tt := range []struct {
		name, url string
		rules     webhook.ARNRules
		want      string
	}{
		{"queue", "arn:aws:sqs:eu-central-1:222222222222:orders-" + org, others, ""},
		{"queue by the id alone", "arn:aws:sqs:us-gov-west-1:222222222222:" + org, others, ""},
		{"bus", "arn:aws:events:eu-central-1:222222222222:event-bus/shop.orders-" + org, others, ""},
		{"own account, permitted", "arn:aws:sqs:eu-central-1:111111111111:orders-" + org, all, ""},
		{"own account", "arn:aws:sqs:eu-central-1:111111111111:orders-" + org, others, fault.DetailNotAllowed},
		{"bus of the own account", "arn:aws:events:eu-central-1:111111111111:event-bus/" + org, others, fault.DetailNotAllowed},
		{"none permitted", "arn:aws:sqs:eu-central-1:222222222222:orders-" + org, webhook.ARNRules{}, fault.DetailNotAllowed},
		{"nobody's queue", "arn:aws:sqs:eu-central-1:222222222222:orders-00000000-0000-0000-0000-000000000000", all, fault.DetailNotAllowed},
		{"another organization's queue", "arn:aws:sqs:eu-central-1:222222222222:orders-" + other, all, fault.DetailNotAllowed},
		{"another organization's bus", "arn:aws:events:eu-central-1:222222222222:event-bus/" + other, all, fault.DetailNotAllowed},
		{"id in front", "arn:aws:sqs:eu-central-1:222222222222:" + org + "-orders", all, fault.DetailNotAllowed},
		{"id in capitals", "arn:aws:sqs:eu-central-1:222222222222:" + strings.ToUpper(org), all, fault.DetailNotAllowed},
		{"no id", "arn:aws:sqs:eu-central-1:222222222222:DeliveriesQueue", all, fault.DetailNotAllowed},
		{"default bus", "arn:aws:events:eu-central-1:222222222222:event-bus/default", all, fault.DetailNotAllowed},
		{"FIFO queue", "arn:aws:sqs:eu-central-1:222222222222:" + org + ".fifo", all, fault.DetailNotAllowed},
		{"longest queue name", "arn:aws:sqs:eu-central-1:222222222222:" + strings.Repeat("q", 44) + org, all, ""},
		{"longer queue name", "arn:aws:sqs:eu-central-1:222222222222:" + strings.Repeat("q", 45) + org, all, fault.DetailFormat},
		{"longest bus name", "arn:aws:events:eu-central-1:222222222222:event-bus/" + strings.Repeat("b", 220) + org, all, ""},
		{"longer bus name", "arn:aws:events:eu-central-1:222222222222:event-bus/" + strings.Repeat("b", 221) + org, all, fault.DetailFormat},
		{"host of another service as region", "arn:aws:sqs:s3:222222222222:" + org, all, fault.DetailFormat},
		{"host of another service and region", "arn:aws:sqs:s3-us-west-2:222222222222:" + org, all, fault.DetailFormat},
		{"host in the region", "arn:aws:sqs:evil.example/eu-west-1:222222222222:" + org, all, fault.DetailFormat},
		{"short account", "arn:aws:sqs:eu-central-1:22222222222:" + org, all, fault.DetailFormat},
		{"another partition", "arn:aws-cn:sqs:cn-north-1:222222222222:" + org, all, fault.DetailFormat},
		{"another service", "arn:aws:sns:eu-central-1:222222222222:" + org, all, fault.DetailFormat},
		{"a rule", "arn:aws:events:eu-central-1:222222222222:rule/" + org, all, fault.DetailFormat},
		{"more behind it", "arn:aws:sqs:eu-central-1:222222222222:" + org + "\\nx", all, fault.DetailFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := webhook.Rules{ARNs: tt.rules}
			_, createErr := rules.ParseCreate([]byte(`{"url":"`+tt.url+`","events":["*"]}`), value.MustID(org), value.NewID())
			_, updateErr := rules.ParseUpdate([]byte(`{"url":"`+tt.url+`"}`), value.MustID(org))
			_, alertsErr := rules.ParseAlerts([]byte(`{"url":"`+tt.url+`"}`), value.MustID(org))
			for _, err := range []error{createErr, updateErr, alertsErr} {
				got := ""
				if f, ok := fault.As(err); ok && len(f.Details) == 1 && f.Details[0].Field == "url" {
					got = f.Details[0].Code
				} else if err != nil {
					t.Errorf("%v, want a fault of the url alone", err)
				}
				if got != tt.want {
					t.Errorf("%s: got %q (%v), want %q", tt.url, got, err, tt.want)
				}
			}
		})
	}
}

func TestBodyOfAQueueOrBusIsThePayloadUnlessItIsTooLarge(t *testing.T) {
	queue, _ := webhook.ParseARN("arn:aws:sqs:eu-central-1:222222222222:q")
	bus, _ := webhook.ParseARN("arn:aws:events:eu-central-1:222222222222:event-bus/b")
	payload := func(notes string) []byte {
		return []byte(`{"id":"018f0000-0000-7000-8000-000000000001","type":"order.created","apiVersion":"2026-11-01","timestamp":"2026-11-21T14:00:21.046Z",` +
			`"organizationId":"018f0000-0000-7000-8000-000000000002","siteId":null,` +
			`"data":{"object":{"id":"018f0000-0000-7000-8000-000000000003","notes":"` + notes + `","updatedAt":"2026-11-21T14:00:21.046Z"},"previousAttributes":{"notes":null}}}`)
	}
	const thin = `{"id":"018f0000-0000-7000-8000-000000000001","type":"order.created","apiVersion":"2026-11-01","timestamp":"2026-11-21T14:00:21.046Z",` +
		`"organizationId":"018f0000-0000-7000-8000-000000000002","siteId":null,` +
		`"data":{"object":{"id":"018f0000-0000-7000-8000-000000000003","updatedAt":"2026-11-21T14:00:21.046Z"},"previousAttributes":{}}}`
	largest := payload(strings.Repeat("x", webhook.MaxARNBody-len(payload(""))))
	larger := payload(strings.Repeat("x", webhook.MaxARNBody-len(payload(""))+1))
	for _, tt := range []struct {
		name          string
		to            webhook.ARN
		payload, want []byte
	}{
		{"queue, largest", queue, largest, largest},
		{"queue, larger", queue, larger, []byte(thin)},
		{"bus, largest", bus, largest, largest},
		{"bus, larger", bus, larger, []byte(thin)},
		{"queue, characters that SQS refuses", queue, payload("\uFFFD\uFFFE\uFFFF☕"), payload("\uFFFD" + `\ufffe\uffff` + "☕")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.to.Body(tt.payload)
			if diff := cmp.Diff(string(tt.want), string(got)); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%.2000s", err, diff)
			}
		})
	}
}
