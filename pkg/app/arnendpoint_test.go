package app_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
)

func TestARNsAreTakenAsTheDeploymentPermits(t *testing.T) {
	const own, foreign = "111111111111", "222222222222"
	for _, tt := range []struct {
		permitted  string
		account    string
		ofOther    bool // organization
		wantStatus int
	}{
		{"", foreign, false, http.StatusBadRequest},
		{"none", foreign, false, http.StatusBadRequest},
		{"other-accounts", foreign, false, http.StatusNotFound}, // accepted, of no application
		{"other-accounts", own, false, http.StatusBadRequest},
		{"all-accounts", own, false, http.StatusNotFound},
		{"all-accounts", foreign, true, http.StatusBadRequest},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			handler := webhooksFunction(t, map[string]string{"ARN_ENDPOINTS": tt.permitted, "ACCOUNT_ID": own})
			request := createEndpoint("")
			org := fmt.Sprint(request.RequestContext.Authorizer["organizationId"])
			if tt.ofOther {
				org = value.NewID().String()
			}
			request.Body = fmt.Sprintf(`{"url":"arn:aws:sqs:eu-central-1:%s:%s","events":["*"]}`, tt.account, org)
			got, err := handler(t.Context(), request)
			if err != nil || got.StatusCode != tt.wantStatus {
				t.Errorf("got %d %s, %v; want %d", got.StatusCode, got.Body, err, tt.wantStatus)
			}
		})
	}
}
