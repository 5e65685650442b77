package servicetest

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/auth/ratelimit"
)

// Unlimited is a rate limiter that admits every request.
type Unlimited struct{}

func (Unlimited) Admit(_ context.Context, _ int, of ...ratelimit.Subject) (ratelimit.Decision, error) {
	return ratelimit.Decision{Allowed: true, Limit: of[0].Limit, Remaining: of[0].Limit, Reset: time.Unix(0, 0)}, nil
}

func (Unlimited) ClientError(string) {}
