package dynamo_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/sender"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func TestRotationsOfSenderKeysAtATimeFollowOneAnother(t *testing.T) {
	table, org, other := dynamotest.NewTable(t), value.NewID(), value.NewID()
	rotate := func(of value.ID, into value.ID) error {
		return dynamo.PutSenderKeys(t.Context(), table, into, func(old *sender.Keys) *sender.Keys {
			next, _ := sender.Rotate(of, old, func([]byte, string) string { return "" }, 1)
			return next
		})
	}
	errs := make([]error, 2)
	var rotations sync.WaitGroup
	for i := range errs {
		rotations.Go(func() { errs[i] = rotate(org, org) })
	}
	rotations.Wait()
	keys, err := table.SenderKeys(t.Context(), org)
	if err != nil || errs[0] != nil || errs[1] != nil || len(keys.Keys) != 2 || keys.Keys[0].ID == keys.Keys[1].ID {
		t.Errorf("after %v: %+v, %v; want the keys of both", errs, keys, err)
	}
	if err := rotate(org, other); err == nil {
		t.Error("an organization gets the keys of another")
	}
	if keys, err := table.SenderKeys(t.Context(), other); keys != nil || err != nil {
		t.Errorf("the other organization has %+v, %v", keys, err)
	}
}

func TestSenderKeysAreErasedWithTheirOrganization(t *testing.T) {
	table := dynamotest.NewTable(t)
	orgs := []value.ID{value.NewID(), value.NewID()}
	for _, org := range orgs {
		if err := dynamo.PutSenderKeys(t.Context(), table, org, func(*sender.Keys) *sender.Keys { return &sender.Keys{OrganizationID: org} }); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	err := dynamo.NewEraser(table).EachItem(t.Context(), orgs[0], func(i *dynamo.OwnedItem) error {
		found = append(found, i.Type)
		return nil
	})
	if err != nil || fmt.Sprint(found) != "[snd]" {
		t.Errorf("the eraser finds %q, %v; want the sender keys of the one organization", found, err)
	}
}
