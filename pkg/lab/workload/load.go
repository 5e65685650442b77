package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// Message is a message of the records queue.
type Message struct {
	Organization value.ID
	Records      []map[string]any // changes
	Delay        int32            // seconds
}

// Send sends messages evenly over a time, or as fast as the queue takes them when it is late, and returns when each was
// due. It repeats each until the queue, which may die with the service, has acknowledged it.
func (s *Service) Send(ctx context.Context, messages []Message, within time.Duration) (due []time.Time, err error) {
	const senders = 8 // requests at a time
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	started := time.Now()
	for n, m := range messages {
		due = append(due, started.Add(within*time.Duration(n)/time.Duration(len(messages))))
		if err := pause.For(sending, time.Until(due[n])); err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		group.Go(func() error { return s.send(sending, m) })
	}
	return due, group.Wait()
}

func (s *Service) send(ctx context.Context, m Message) error {
	const timeout, interval = 2 * time.Second, 50 * time.Millisecond
	text, err := json.Marshal(map[string]any{"organizationId": m.Organization, "records": m.Records})
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	body, group := string(text), m.Organization.String()
	in := &sqs.SendMessageInput{QueueUrl: &s.Info.RecordsQueueURL, MessageBody: &body, MessageGroupId: &group, DelaySeconds: m.Delay}
	for until := time.Now().Add(startTimeout); ; {
		trying, cancel := context.WithTimeout(ctx, timeout)
		_, err := s.Queues.SendMessage(trying, in)
		cancel()
		if err == nil {
			return nil
		}
		if pause.For(ctx, interval) != nil || time.Now().After(until) {
			return fmt.Errorf("send a message: %w", err)
		}
	}
}

// Tenant is an organization with one application.
type Tenant struct {
	ID  value.ID
	API *apiclient.Client // with the token of the owner

	application value.ID
}

// NewTenant makes an organization and its application as a user would.
func (s *Service) NewTenant(ctx context.Context) (*Tenant, error) {
	t := &Tenant{ID: value.NewID()}
	jwt, err := s.issuer.Sign(issuer.Grant{
		Subject: value.NewID().String(), OrganizationID: t.ID, Roles: []auth.Role{auth.Owner}, Lifetime: 24 * time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("sign a token: %w", err)
	}
	t.API = apiclient.New(s.Info.BaseURL, jwt)
	t.application, err = t.create(ctx, "/developers/applications", map[string]any{"name": "lab"})
	return t, err
}

// CreateEndpoint makes an endpoint with the members that the API takes, such as url and events.
func (t *Tenant) CreateEndpoint(ctx context.Context, members map[string]any) (value.ID, error) {
	return t.create(ctx, "/developers/webhooks/endpoints?applicationId="+t.application.String(), members)
}

func (t *Tenant) create(ctx context.Context, path string, members map[string]any) (value.ID, error) {
	var created struct {
		ID value.ID `json:"id"`
	}
	if err := t.API.Create(ctx, path, members, &created); err != nil {
		return created.ID, fmt.Errorf("create at %s: %w", path, err)
	}
	return created.ID, nil
}

// Load is tenants that send new products in turns, each in a message of its own.
type Load struct {
	service *Service
	tenants []*Tenant
	sent    int
}

// NewLoad makes organizations whose endpoints, at the URL, are for new products.
func (s *Service) NewLoad(ctx context.Context, organizations int, url string) (*Load, error) {
	l := &Load{service: s}
	for range organizations {
		t, err := s.NewTenant(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := t.CreateEndpoint(ctx, map[string]any{"url": url, "events": []string{"product.created"}}); err != nil {
			return nil, err
		}
		l.tenants = append(l.tenants, t)
	}
	return l, nil
}

// Send sends products evenly over a time, or as fast as the queue takes them. It returns their ids and when each was due.
func (l *Load) Send(ctx context.Context, products int, within time.Duration) (ids []value.ID, due []time.Time, err error) {
	messages, ids := make([]Message, products), make([]value.ID, products)
	for n := range products {
		t, number := l.tenants[l.sent%len(l.tenants)], l.sent/len(l.tenants)
		ids[n] = value.NewID()
		messages[n] = Message{Organization: t.ID, Records: []map[string]any{putProduct(t.ID, ids[n], number, false)}}
		l.sent++
	}
	due, err = l.service.Send(ctx, messages, within)
	return ids, due, err
}

// Run sends products and waits for their events. It returns how long the events took to arrive, in ascending order, and
// all together. An event's time counts from when its record was due: a sender that is held up does not hide that events
// wait.
func (l *Load) Run(ctx context.Context, products int, within time.Duration) (latencies Latencies, took time.Duration, err error) {
	ids, due, err := l.Send(ctx, products, within)
	if err != nil {
		return nil, 0, err
	}
	arrived, err := l.service.Receiver.await(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	for n, at := range arrived {
		latencies = append(latencies, at.Sub(due[n]))
	}
	slices.Sort(latencies)
	return latencies, slices.MaxFunc(arrived, time.Time.Compare).Sub(due[0]), nil
}

// AwaitLists waits until the lists of the tenants that sent last show their records, and that the events were delivered.
// They are few, since what their requests use counts for the events.
func (l *Load) AwaitLists(ctx context.Context) error {
	const some = 4
	group, waiting := errgroup.WithContext(ctx)
	for n := max(0, l.sent-min(some, len(l.tenants))); n < l.sent; n++ {
		t, sent := l.tenants[n%len(l.tenants)], n/len(l.tenants)+1
		for _, list := range []string{"/api/products?limit=1", "/developers/webhooks/events?status=DELIVERED&limit=1"} {
			group.Go(func() error { return AwaitTotal(waiting, t.API, list, sent) })
		}
	}
	return group.Wait()
}

// AwaitTotal waits until a list has a total, for ten minutes at most.
func AwaitTotal(ctx context.Context, client *apiclient.Client, list string, want int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		var page struct {
			Meta struct {
				Total int `json:"total"`
			} `json:"meta"`
		}
		err := client.Get(ctx, list, &page)
		if err == nil && page.Meta.Total == want {
			return nil
		}
		if waited := pause.For(ctx, 100*time.Millisecond); waited != nil {
			return fmt.Errorf("the list %s has %d of %d: %w", list, page.Meta.Total, want, errors.Join(err, waited))
		}
	}
}

// Latencies are in ascending order.
type Latencies []time.Duration

// Percentile is the latency within which p percent came, of all of them; 0 of none.
func (l Latencies) Percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[max(0, int(math.Ceil(p/100*float64(len(l))))-1)]
}

// Store sends an organization's first products in messages of many records. They make no events.
func (s *Service) Store(ctx context.Context, organization value.ID, products int) error {
	const most = 400
	var messages []Message
	for first := 0; first < products; first += most {
		m := Message{Organization: organization}
		for n := first; n < min(first+most, products); n++ {
			m.Records = append(m.Records, putProduct(organization, ProductID(organization, n), n, true))
		}
		messages = append(messages, m)
	}
	_, err := s.Send(ctx, messages, 0)
	return err
}

// The words of which products are made.
const (
	Things    = "Shirt Trousers Chair Table Lamp Kettle Bag Hat Gloves Mug Bowl Pillow Curtain Rug Clock Vase Jacket Scarf Teapot Shelf"
	materials = "Cotton Linen Wool Steel Oak Granite Leather Silk Bamboo Glass Ceramic Brass Café Plástico"
	qualities = "Organic Classic Slim Rustic Ergonomic Handmade Vintage Modern Light Heavy Recycled Premium"
	praise    = "Made to be used every day and to last for years: carefully chosen materials, finished by hand, easy to clean."
)

// firstCreated is when the first product was created; the others follow a minute apart.
const firstCreated value.Time = 1_760_000_000_000

// ProductID is the id of an organization's n-th product that is stored without an event.
func ProductID(organization value.ID, n int) value.ID {
	return value.DeriveID(organization, "product "+strconv.Itoa(n))
}

// putProduct is the change that stores an organization's n-th product, but for its id the same on every run. Its event has a
// payload of about 1 KB; a silent one has no event.
func putProduct(organization, id value.ID, n int, silent bool) map[string]any {
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // not secret, and the same on every run
	pick := func(words string) string {
		all := strings.Fields(words)
		return all[r.IntN(len(all))]
	}
	return map[string]any{"kind": commerce.KindProduct, "op": commerce.OpPut, "silent": silent, "record": map[string]any{
		"id": id, "createdAt": firstCreated + value.Time(n)*60_000,
		"name":        strings.Join([]string{pick(qualities), pick(materials), pick(Things), strconv.Itoa(r.IntN(1000))}, " "),
		"description": praise, "sku": "SKU-" + strconv.Itoa(1_000_000+n), "barcode": strconv.Itoa(4_000_000_000_000 + n*7919),
		"categoryId":   value.DeriveID(organization, "category "+strconv.Itoa(r.IntN(200))),
		"brandId":      value.DeriveID(organization, "brand "+strconv.Itoa(r.IntN(1000))),
		"sellingPrice": float64(99+r.IntN(200_00)) / 100, "taxRate": 20, "isActive": r.IntN(10) > 0, "trackInventory": r.IntN(2) > 0,
		"attributes": map[string]any{"size": pick("XS S M L XL"), "weightGrams": 50 + r.IntN(5000)},
		"tags":       []string{pick(qualities), "collection " + strconv.Itoa(r.IntN(40))},
	}}
}
