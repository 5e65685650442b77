package webhook

import "github.com/commerce-integration/service/pkg/base/value"

// RecoveryStatus is a recovery's status.
type RecoveryStatus string

// The statuses of a recovery.
const (
	RecoveryRunning   RecoveryStatus = "RUNNING"
	RecoveryCompleted RecoveryStatus = "COMPLETED"
	RecoveryCancelled RecoveryStatus = "CANCELLED" // its endpoint is gone or no longer ACTIVE
)

// Values lists every status of a recovery.
func (RecoveryStatus) Values() []string {
	return []string{string(RecoveryRunning), string(RecoveryCompleted), string(RecoveryCancelled)}
}

// Recovery sends again an endpoint's HELD and FAILED deliveries that were
// created in [Since, Until), oldest first.
type Recovery struct {
	ID             value.ID       `json:"id"`
	EndpointID     value.ID       `json:"endpointId"`
	OrganizationID value.ID       `json:"organizationId"`
	Status         RecoveryStatus `json:"status"`
	Since          value.Time     `json:"since"`
	Until          value.Time     `json:"until"`
	MatchedCount   int64          `json:"matchedCount"`
	RequeuedCount  int64          `json:"requeuedCount"`
	CreatedAt      value.Time     `json:"createdAt"`
	UpdatedAt      value.Time     `json:"updatedAt"`
	CompletedAt    *value.Time    `json:"completedAt"`
	// Cursor is where the next step goes on; a delivery behind it that fails
	// again is not sent a second time by the same recovery.
	Cursor string `json:"cursor"`
}

// End returns the recovery in its last status.
func (r *Recovery) End(status RecoveryStatus, now value.Time) *Recovery {
	next := *r
	next.Status, next.UpdatedAt, next.CompletedAt = status, max(now, r.UpdatedAt+1), &now
	return &next
}

// Advance returns the recovery after a step.
func (r *Recovery) Advance(matched, requeued int, cursor string, now value.Time) *Recovery {
	next := *r
	next.MatchedCount += int64(matched)
	next.RequeuedCount += int64(requeued)
	next.Cursor, next.UpdatedAt = cursor, max(now, r.UpdatedAt+1)
	return &next
}
