package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lab/meter"
	"github.com/commerce-integration/service/pkg/lab/workload"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/price"
)

// The deployment that the scattered requests are a part of: so many tenants, and
// at each of the instances so many requests a second of each tenant.
const (
	modelledTenants   = 1000
	modelledInstances = 50
	modelledRate      = 500.0 // a second, of all tenants at all instances
)

// scatteredPages are what the tenants ask for: what is new, a filter with an
// order, and a search.
func scatteredPages() []map[string]string {
	return []map[string]string{
		{},
		{"isActive": "true", "orderBy": "sellingPrice", "orderDirection": "asc"},
		{"search": "oak lamp", "orderBy": "name"},
	}
}

// scattered is a table with tenants, and instances of the functions that share
// it under a clock of its own.
type scattered struct {
	*bench
	server    *tableserver.Server
	client    *dynamodb.Client // metered
	name      string
	now       time.Time
	random    *rand.Rand
	log       logBytes
	tenants   []scatteredTenant
	first     value.ID // of the products, which each tenant has
	instances []scatteredInstance
}

type scatteredTenant struct {
	organization value.ID
	key          string
}

// logBytes counts what functions log.
type logBytes int

func (n *logBytes) Write(line []byte) (int, error) {
	*n += logBytes(len(line))
	return len(line), nil
}

// scatteredInstance is one instance of the authorizer and one of the read API.
type scatteredInstance struct {
	authorize app.AuthorizerFunc
	answer    app.GatewayFunc
}

// scattered is the section of what a list costs where a tenant's requests are
// rare at each of many instances.
func (b *bench) scattered(ctx context.Context) (err error) {
	s := &scattered{
		bench: b, now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), name: "scattered", random: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // the same on every run
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.Close()) }()
	started := time.Now()
	if err := s.stock(ctx); err != nil {
		return err
	}
	b.progress("%s tenants of %s products stored in %.1f s", thousands(b.Tenants), thousands(b.TenantProducts), time.Since(started).Seconds())
	t := b.table(fmt.Sprintf("A list of 20, scattered: %s tenants of %s products, %d instances", thousands(modelledTenants), thousands(b.TenantProducts), modelledInstances),
		"read units", "of them", "write units", "of them", "calls", "CPU", "table", "Lambda", "both, a million")
	t.note = fmt.Sprintf("Scaled down to %d tenants at %d instances, whose views get the same part of memory as with %s tenants. "+
		"Each tenant asks an instance for one of %d pages every %.0f s, by an API key and a clock that the benchmark moves. Nothing changes meanwhile. "+
		"The first request for each page of a tenant at an instance loads the view or the records, once in the life of an instance; the rows below have that behind them. "+
		"A write whose condition fails counts as a unit. Zipf: the n-th tenant asks n times as rarely as the first. %s",
		b.Tenants, b.Instances, thousands(modelledTenants), len(scatteredPages()), modelledTenants*modelledInstances/modelledRate, lambdaNote())
	for _, memory := range []int{1024, 3008} {
		if err := s.deploy(ctx, memory); err != nil {
			return err
		}
		first, err := s.measure(ctx, s.everyPage())
		if err != nil {
			return err
		}
		s.report(t, fmt.Sprintf("%s MB, the first request for each page", thousands(memory)), "", memory, first)
		for _, shape := range []struct {
			name   string
			weight func(rank int) float64
		}{
			{"uniform", func(int) float64 { return 1 }},
			{"Zipf", func(rank int) float64 { return 1 / float64(rank) }},
		} {
			if _, err := s.measure(ctx, s.draw(b.Requests/3, shape.weight)); err != nil { // settles the caches
				return err
			}
			u, err := s.measure(ctx, s.draw(b.Requests, shape.weight))
			if err != nil {
				return err
			}
			target := ""
			if shape.name == "uniform" && memory == 3008 {
				target = "≤ 6 read, ≤ 0.3 write units"
			}
			s.report(t, fmt.Sprintf("%s MB, %s", thousands(memory), shape.name), target, memory, u)
		}
		byID := s.draw(b.Requests/3, func(int) float64 { return 1 })
		for i := range byID {
			byID[i].page = len(scatteredPages())
		}
		u, err := s.measure(ctx, byID)
		if err != nil {
			return err
		}
		s.report(t, fmt.Sprintf("%s MB, uniform, a product by its id", thousands(memory)), "", memory, u)
	}
	return nil
}

// start makes the table.
func (s *scattered) start(ctx context.Context) error {
	program, err := tableserver.Install(ctx, s.BinDir)
	if err != nil {
		return err
	}
	if s.server, err = tableserver.Start(ctx, program, filepath.Join(s.dir, "scattered")); err != nil {
		return err
	}
	model, err := template.Load(s.Template, map[string]string{"JwtIssuer": "bench", "JwtAudience": "bench"})
	if err == nil {
		url := s.server.Endpoint()
		s.client = dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = &url }, s.meter.Measure)
		_, err = provision.Table(ctx, s.client, model.Table, s.name)
	}
	if err != nil {
		return errors.Join(err, s.server.Close())
	}
	return nil
}

func (s *scattered) clock() time.Time { return s.now }

// stock stores the tenants, each with the same products: the index of all, and
// those records that the pages show.
func (s *scattered) stock(ctx context.Context) error {
	table := dynamo.New(s.client, s.name, s.clock)
	products, documents, err := s.catalogue()
	if err != nil {
		return err
	}
	list := index.NewLists(table, dynamo.Shards).Records[commerce.KindProduct]
	manifest, chunks := oneSegment(list.Schema, documents)
	var shown []*commerce.Stored
	for range s.Tenants {
		tenant := scatteredTenant{organization: value.NewID()}
		if tenant.key, err = s.register(ctx, table, tenant.organization); err != nil {
			return err
		}
		s.tenants = append(s.tenants, tenant)
		for _, c := range chunks {
			if _, err := table.PutChunk(ctx, tenant.organization, list.Name, c, 0); err != nil {
				return err
			}
		}
		key := index.Key{Org: tenant.organization, List: list}
		stored := index.StoredManifest{Version: 1, Body: key.EncodeManifest(manifest)}
		if _, err := table.PutManifest(ctx, tenant.organization, list.Name, key.Layout().Live(), stored); err != nil {
			return err
		}
		if shown == nil {
			// The first tenant gets every record, and tells which are shown.
			if err := store(ctx, table, tenant.organization, products); err != nil {
				return err
			}
			if shown, err = s.shown(ctx, products); err != nil {
				return err
			}
			continue
		}
		if err := store(ctx, table, tenant.organization, shown); err != nil {
			return err
		}
	}
	return nil
}

// register makes an application of the organization and returns a key of it.
func (s *scattered) register(ctx context.Context, table *dynamo.Table, organization value.ID) (string, error) {
	name, now := "scattered", value.TimeOf(s.now)
	application := account.NewApplication(organization, value.NewID(), account.CreateApplicationDto{Name: &name}, now)
	if err := table.CreateApplication(ctx, organization, application, account.ReadScopes()); err != nil {
		return "", err
	}
	key, credential := account.NewKey(&application, value.NewID(), account.CreateApiKeyDto{Name: &name}, now)
	return key.Key, table.CreateKey(ctx, organization, key.APIKey, credential)
}

// catalogue makes the products and what the index has of them.
func (s *scattered) catalogue() ([]*commerce.Stored, []columnar.Document, error) {
	var products []*commerce.Stored
	var documents []columnar.Document
	organization := value.NewID()
	for n := range s.TenantProducts {
		record, err := json.Marshal(workload.Product(organization, n))
		if err != nil {
			return nil, nil, err
		}
		change := commerce.Change{Kind: commerce.KindProduct, Op: commerce.OpPut, OrganizationID: organization, Record: record}
		stored, err := commerce.Apply(nil, change, value.TimeOf(s.now))
		if err != nil {
			return nil, nil, err
		}
		document, err := commerce.Document(stored, stored.Revision)
		if err != nil {
			return nil, nil, err
		}
		products, documents = append(products, stored), append(documents, document)
	}
	return products, documents, nil
}

// oneSegment is an index as the compactor leaves it after a full merge.
func oneSegment(schema *columnar.Schema, documents []columnar.Document) (*index.Manifest, []index.StoredChunk) {
	const chunkBytes = 380 << 10
	e := segment.Encode(schema, documents)
	stored := &index.Segment{Rows: e.Rows, Unpacked: e.Unpacked}
	var chunks []index.StoredChunk
	for g, data := range e.Groups {
		stored.Groups[g] = len(data)
		for part := range slices.Chunk(data, chunkBytes) {
			number := uint64(len(chunks) + 1)
			chunks = append(chunks, index.StoredChunk{Number: number, ContentID: number, Body: part})
			stored.Chunks = append(stored.Chunks, index.Chunk{Number: number, ContentID: number, Size: len(part)})
		}
	}
	return &index.Manifest{Partitions: []*index.Partition{{Segments: []*index.Segment{stored}}}}, chunks
}

// store stores records as the organization's.
func store(ctx context.Context, table *dynamo.Table, organization value.ID, records []*commerce.Stored) error {
	for some := range slices.Chunk(records, 500) {
		own := make([]*commerce.Stored, len(some))
		for i, s := range some {
			one := *s
			one.OrganizationID, own[i] = organization, &one
		}
		if err := errors.Join(table.CreateRecords(ctx, own)...); err != nil {
			return err
		}
	}
	return nil
}

// shown asks the first tenant's pages for the records that they show.
func (s *scattered) shown(ctx context.Context, products []*commerce.Stored) ([]*commerce.Stored, error) {
	if err := s.deployOne(ctx, 1024); err != nil {
		return nil, err
	}
	ids := map[value.ID]bool{}
	for _, page := range scatteredPages() {
		body, err := s.ask(ctx, &s.instances[0], &s.tenants[0], page)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Data []struct {
				ID value.ID `json:"id"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return nil, err
		}
		for _, product := range answer.Data {
			ids[product.ID], s.first = true, product.ID
		}
	}
	return slices.DeleteFunc(slices.Clone(products), func(p *commerce.Stored) bool { return !ids[p.ID] }), nil
}

// deploy starts the instances anew, with as much memory for views as the part of
// the tenants that there are here.
func (s *scattered) deploy(ctx context.Context, memory int) error {
	s.instances = nil
	for range s.Instances {
		// A function of less than 1,024 MB gives views half.
		part := 2 * app.ViewBytes(int64(memory)<<20) >> 20 * int64(s.Tenants) / modelledTenants
		if err := s.deployOne(ctx, int(part)); err != nil {
			return err
		}
	}
	return nil
}

func (s *scattered) deployOne(ctx context.Context, memory int) error {
	d := &app.Dependencies{
		Config: app.Config{TableName: s.name, JWTIssuer: "bench", JWTAudience: "bench", HS256Secret: string(bytes.Repeat([]byte{'s'}, 32)), OrganizationClaim: "organizationId", DefaultRole: "VIEWER"},
		AWS:    runner.AWSConfig(), Table: dynamo.New(s.client, s.name, s.clock), MemoryMB: max(1, memory),
		Logger: slog.New(slog.NewJSONHandler(&s.log, nil)), Clock: s.clock,
	}
	authorize, err := app.Authorizer(ctx, d)
	if err != nil {
		return err
	}
	answer, err := app.API(ctx, d)
	s.instances = append(s.instances, scatteredInstance{authorize, answer})
	return err
}

// ask authorizes and answers a request of a tenant for a page of products, nil
// for one product by its id.
func (s *scattered) ask(ctx context.Context, i *scatteredInstance, tenant *scatteredTenant, page map[string]string) ([]byte, error) {
	path := "/api/products"
	if page == nil {
		path += "/" + s.first.String()
	}
	headers := map[string]string{"X-API-Key": tenant.key, "Accept": "application/json"}
	allowed, err := i.authorize(ctx, events.APIGatewayCustomAuthorizerRequestTypeRequest{Resource: path, Path: path, Headers: headers, MethodArn: "arn:aws:execute-api:us-east-1:1:a/v1/GET" + path})
	if err != nil {
		return nil, err
	}
	answer, err := i.answer(ctx, events.APIGatewayProxyRequest{
		Resource: path, Path: path, HTTPMethod: "GET", Headers: headers, QueryStringParameters: page,
		RequestContext: events.APIGatewayProxyRequestContext{Path: "/v1" + path, Stage: "v1", Authorizer: allowed.Context},
	})
	if err == nil && answer.StatusCode != 200 {
		err = fmt.Errorf("%v: status %d: %s", page, answer.StatusCode, answer.Body)
	}
	return []byte(answer.Body), err
}

// visit is one request.
type visit struct{ tenant, instance, page int }

// everyPage visits each instance once for each page of each tenant, in any order.
func (s *scattered) everyPage() []visit {
	var all []visit
	for tenant := range s.tenants {
		for instance := range s.instances {
			for page := range scatteredPages() {
				all = append(all, visit{tenant, instance, page})
			}
		}
	}
	s.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// draw draws visits, of tenants by their weight.
func (s *scattered) draw(requests int, weight func(rank int) float64) []visit {
	sums, sum := make([]float64, len(s.tenants)), 0.0
	for i := range sums {
		sum += weight(i + 1)
		sums[i] = sum
	}
	all := make([]visit, requests)
	for i := range all {
		all[i] = visit{sort.SearchFloat64s(sums, s.random.Float64()*sum), s.random.IntN(len(s.instances)), s.random.IntN(len(scatteredPages()))}
	}
	return all
}

// scatteredUse is what requests used, each.
type scatteredUse struct {
	spent
	calls     float64 // of the table, one after another or at a time
	cpu       time.Duration
	apiCalls  float64
	authCalls float64
	log       float64 // bytes
}

// measure makes requests at the modelled rate and tells what each used.
func (s *scattered) measure(ctx context.Context, visits []visit) (scatteredUse, error) {
	pages, step := append(scatteredPages(), nil), time.Duration(float64(time.Second)*modelledTenants*modelledInstances/modelledRate/float64(s.Tenants*s.Instances))
	s.meter.Reset()
	s.log = 0
	before := workload.OwnCPU()
	for _, v := range visits {
		s.now = s.now.Add(time.Duration(s.random.ExpFloat64() * float64(step)))
		if _, err := s.ask(ctx, &s.instances[v.instance], &s.tenants[v.tenant], pages[v.page]); err != nil {
			return scatteredUse{}, fmt.Errorf("tenant %d at instance %d: %w", v.tenant, v.instance, err)
		}
	}
	n := float64(len(visits))
	u := scatteredUse{cpu: workload.OwnCPU().Since(before).Own / time.Duration(len(visits))}
	uses := s.meter.Uses()
	u.spent = share("", uses, n, requestKinds()...)
	for use, units := range uses {
		if use.Item == meter.KeyItem || use.Item == meter.ApplicationItem {
			u.authCalls += float64(units.Calls) / n
		} else {
			u.apiCalls += float64(units.Calls) / n
		}
	}
	u.calls, u.log = u.authCalls+u.apiCalls, float64(s.log)/n
	return u, nil
}

func (s *scattered) report(t *table, name, target string, memory int, u scatteredUse) {
	dollars := u.dollars()
	lambda := lambdaDollars(float64(memory)/1024, u.apiCalls, u.cpu) + lambdaDollars(authorizerMemory, u.authCalls, 0)
	t.add(name, target, append(u.cells(), strconv.FormatFloat(u.calls, 'f', 1, 64), milliseconds(u.cpu),
		fmt.Sprintf("$%.2f", dollars), fmt.Sprintf("$%.2f", lambda), fmt.Sprintf("$%.2f", dollars+lambda))...)
	s.all = append(s.all, bill{
		name: name + ", scattered", table: dollars, gateway: price.GatewayRequests, lambda: lambda, logs: logDollars(u.log),
	})
}
