package dispatcher

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// readers is the organizations whose endpoints are read at a time.
const readers = 8

// addressed is an event with whom it goes to.
type addressed struct {
	commerce.WebhookPayload
	// of restricts the event to an application's endpoints but one.
	of *webhook.Endpoint

	directory  *webhook.Directory
	subscribed []*webhook.Endpoint
}

func (a *addressed) reaches(e *webhook.Endpoint) bool {
	if a.of != nil && (e.ApplicationID != a.of.ApplicationID || e.ID == a.of.ID) {
		return false
	}
	return commerce.Matches(e.SubscribedEvents, a.Type)
}

// address finds the endpoints of every event. Those of an organization are
// read once, and not kept beyond the batch: a change of theirs holds for the
// next one.
func (d *Dispatcher) address(ctx context.Context, changes []*change) {
	type directory struct {
		*webhook.Directory
		err error
	}
	directories := map[value.ID]*directory{}
	var group errgroup.Group
	group.SetLimit(readers)
	for _, c := range changes {
		if len(c.events) == 0 || directories[c.organization()] != nil {
			continue
		}
		org, read := c.organization(), &directory{}
		directories[org] = read
		group.Go(func() error {
			read.Directory, read.err = d.store.Directory(ctx, org)
			return nil
		})
	}
	_ = group.Wait() // every error is in its directory
	for _, c := range changes {
		if len(c.events) == 0 {
			continue
		}
		read := directories[c.organization()]
		c.fail(read.err)
		for i := range c.events {
			if read.err == nil {
				c.events[i].address(read.Directory)
			}
		}
	}
}

// organization is that of all events of a change, which has some.
func (c *change) organization() value.ID { return c.events[0].OrganizationID }

func (a *addressed) address(directory *webhook.Directory) {
	a.directory = directory
	for _, e := range directory.Endpoints {
		if directory.Applications[e.ApplicationID] != webhook.ApplicationAbsent && a.reaches(e) {
			a.subscribed = append(a.subscribed, e)
		}
	}
}

// fail notes why the change is not dispatched. A fault that passes counts
// more than one of the change's own, which parks it.
func (c *change) fail(err error) {
	if err != nil && (c.err == nil || fault.Is(err, fault.Unavailable)) {
		c.err = err
	}
}
