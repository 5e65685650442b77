package records

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// The feed answers, record by record, what changed since a cursor. It reads the
// lists of the kinds and that of deletions, one after the other. For each list
// the cursor has a time from which on the client lacks what became visible in
// it. A walk by id goes through what became visible from then on and before the
// time that package index gives to go on from, which is fixed as the walk
// begins. So the walk ends, whatever changes meanwhile, and the next one begins
// where it ended: nothing is missed, however late a change reached its list.
//
// Each change shows the record as a strongly consistent read finds it for this
// very answer. So successive answers never move a record back in time, whichever
// instance gives them and whichever list is behind. A record
// that its list shows and that is deleted by then is left out: its deletion is,
// or will be, in the other list; and likewise a deletion of a record that lives
// again.

const (
	afterParam = "after"
	kindsParam = "kinds"
	waitParam  = "wait"
	limitParam = "limit"

	// fromNow is the cursor of the present.
	fromNow = "now"

	maxChanges     = 1000
	defaultChanges = 100
	maxWait        = 20 // seconds

	// maxWaits is how many requests of an organization wait at a time.
	maxWaits = 10
	// longestWait is for how long one counts that does not end: API Gateway gives
	// up after it.
	longestWait = 29 * time.Second

	// feedInterval is the time between two looks of a request that waits. Views
	// follow their lists as often.
	feedInterval = time.Second
	// readBatch is how many records, of at most 256 KiB each, one read takes.
	readBatch = 100
	// clockAge is how much the clocks of the service differ at most, by far. In a
	// list that does not know the time of its last change, a change older than
	// that has no change before it to come.
	clockAge = 24 * time.Hour
)

// Change is a record that changed, as it is now, or its deletion.
type Change struct {
	Kind      commerce.Kind   `json:"kind" doc:"The kind of the record; an open enumeration."`
	Op        changeOp        `json:"op" doc:"put: the record exists, as object shows it. delete: it was deleted."`
	ID        value.ID        `json:"id" doc:"The id of the record."`
	ChangedAt value.Time      `json:"changedAt" doc:"The updatedAt of the object, or the time of the deletion. It never decreases from one change of a record to the next."`
	Object    *map[string]any `json:"object" doc:"The record as GET answers it by id. null when it was deleted."`
	Cursor    string          `json:"cursor" doc:"The cursor to send as after to go on behind this change. As text it is greater than those of the changes before."`
}

// changeOp is what became of a record.
type changeOp commerce.Op

// Values lists what clients see.
func (changeOp) Values() []string { return []string{string(commerce.OpPut), string(commerce.OpDelete)} }

// ChangesMeta says how to go on.
type ChangesMeta struct {
	Next string `json:"next" doc:"The cursor to send as after next time, also if there was no change."`
	More bool   `json:"more" doc:"Whether more changes are waiting: ask again at once."`
}

// Changes is a page of the feed.
type Changes struct {
	Data []Change    `json:"data" doc:"The changes. Those of one record are in their order."`
	Meta ChangesMeta `json:"meta" doc:"How to go on."`
}

// changes is the operation that reads the feed.
func (a *area) changes() api.Operation {
	columns := columnsOf(Change{})
	return api.Operation{
		ID: "listChanges", Method: http.MethodGet, Path: "/api/changes", Tag: "Changes", Access: api.Reader, AnyScope: auth.ReadScopes(),
		Result: Changes{}, Rows: true, Params: append(feedParams(), api.SiteHeader(), api.SiteQuery()),
		Summary: "Read what changed",
		Description: "Every record that was stored, changed or deleted after the cursor, of all kinds that the credential may read. A record " +
			"that changed several times is answered once, in its current state: no change is missed, and successive answers never move a " +
			"record back in time, but states in between are not kept. The order of different records has no meaning. " +
			"A change is in the feed about a second after it was stored; the same state may come twice. " +
			"Deletions are those of the last 90 days, of every site. A credential limited to sites does not see that a record leaves them. " +
			"A cursor can be continued for 89 days, with the same sites and at least its kinds; a kind that is added begins with its first record. " +
			"Otherwise 400 cursor_expired or cursor_mismatch says to begin anew. " +
			"As " + api.NDJSON + " and " + api.CSV + " the answer is the changes alone: X-Next-Cursor is meta.next, and Link has rel next while meta.more. " +
			"Each second of a wait counts as a request against the rate limit, and ends where that is reached. Of an organization " +
			"ten requests wait at a time; another one is answered at once.",
		Handle: func(r *api.Request) (*api.Response, error) {
			f, err := a.newFeed(r, columns)
			if err != nil {
				return nil, err
			}
			return f.answer(r.Context())
		},
	}
}

func feedParams() []api.Param {
	return []api.Param{
		{
			Name: afterParam, In: fault.InQuery, Type: "string", Min: new(int64(1)),
			Description: "The cursor: meta.next of the answer before. Absent: from the beginning, which is every record, and every deletion of 90 days. " +
				"now answers the cursor of the present and no change.",
		},
		{
			Name: kindsParam, In: fault.InQuery, Type: "string", Enum: commerce.Kind("").Values(), Multi: true,
			Description: "The kinds of the records. Absent: those that the credential may read.",
		},
		{
			Name: waitParam, In: fault.InQuery, Type: "integer", Default: "0", Min: new(int64(0)), Max: new(int64(maxWait)),
			Description: "The time to wait for a change, in seconds, while there is none.",
		},
		{
			Name: limitParam, In: fault.InQuery, Type: "integer", Default: strconv.Itoa(defaultChanges), Min: new(int64(1)), Max: new(int64(maxChanges)),
			Description: "The most changes in an answer; fewer if it would exceed 5.5 MiB. Deletions of several kinds with one id stay together.",
		},
	}
}

// feed is one request for changes.
type feed struct {
	*area
	r        *api.Request
	scope    [8]byte
	kinds    []commerce.Kind
	kindBits uint64
	cursor   *cursor // of a list for each kind, then of the deletions
	limit    int
	wait     time.Duration
	begin    bool // now was asked for
	now      value.Time

	out *writer
}

// newFeed reads the kinds and the cursor.
func (a *area) newFeed(r *api.Request, c *columns) (*feed, error) {
	f := &feed{
		area: a, r: r, limit: r.Number(limitParam), wait: time.Duration(r.Number(waitParam)) * time.Second,
		now: value.TimeOf(a.clock()), out: newWriter(r, c),
	}
	var asked []string
	if text := r.Query.Get(kindsParam); text != "" {
		asked = strings.Split(text, ",")
	}
	if err := f.choose(asked); err != nil {
		return nil, err
	}
	return f, f.resume()
}

// choose takes the kinds that were asked for, or all that the credential may read.
func (f *feed) choose(asked []string) error {
	may, err := readable(f.r, asked)
	for _, kind := range may {
		if asked == nil || slices.Contains(asked, kind) {
			f.kinds = append(f.kinds, commerce.Kind(kind))
		}
	}
	f.scope, f.kindBits = scopeSum(f.r), kindBits(f.kinds)
	return err
}

// resume takes the cursor, or begins.
func (f *feed) resume() (err error) {
	f.cursor = &cursor{positions: make([]position, len(f.kinds)+1)}
	switch after := f.r.Query.Get(afterParam); after {
	case "":
	case fromNow:
		f.begin = true
	default:
		f.cursor, err = decodeCursor(after, f.scope, f.kinds, f.now)
	}
	return err
}

// answer reads until there is a change or the wait is over.
func (f *feed) answer(ctx context.Context) (*api.Response, error) {
	more, err := f.look(ctx)
	if err == nil && !more && f.out.count == 0 && f.wait > 0 && !f.begin {
		more, err = f.await(ctx)
	}
	if err != nil {
		return nil, err
	}
	return f.page(more), nil
}

// await looks each second until there is a change or the wait is over, unless too many
// requests of the organization wait already.
func (f *feed) await(ctx context.Context) (more bool, err error) {
	org, request := f.r.Organization(), value.NewRandomID()
	begun, err := f.store.BeginWait(ctx, org, request, maxWaits, f.now, f.now.Add(longestWait))
	if err != nil || !begun {
		return false, err
	}
	defer func() { _ = f.store.EndWait(ctx, org, request) }() // otherwise it ends by itself
	for left := f.wait; left > 0 && err == nil && !more && f.out.count == 0; left -= feedInterval {
		if err := f.pause(ctx, feedInterval); err != nil {
			return false, err
		}
		if err := f.r.AdmitAgain(); err != nil {
			if fault.Is(err, fault.RateLimited) {
				err = nil
			}
			return false, err
		}
		more, err = f.look(ctx)
	}
	return more, err
}

// look reads the lists, unless the organization's activity says that they have
// nothing new.
func (f *feed) look(ctx context.Context) (full bool, err error) {
	f.now = value.TimeOf(f.clock())
	f.cursor.issuedAt = f.now
	active, err := f.store.Activity(ctx, f.r.Organization())
	if err != nil || f.cursor.quiet(active, f.now) {
		return false, err
	}
	f.cursor.active, f.cursor.checkedAt = active, 0
	if f.begin {
		err = f.skip(ctx)
	} else {
		full, err = f.read(ctx)
	}
	if !full {
		f.cursor.checkedAt = f.now
	}
	return full, err
}

// skip moves the cursor to the present.
func (f *feed) skip(ctx context.Context) (err error) {
	for i := range f.cursor.positions {
		if f.cursor.positions[i].From, err = f.complete(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// read reads each list once, from the one whose turn it is, until the answer is
// full. So a list that changes all the time does not keep the others waiting.
func (f *feed) read(ctx context.Context) (full bool, err error) {
	for range f.cursor.positions {
		if full, err = f.readList(ctx, f.cursor.turn); full || err != nil {
			return full, err
		}
		f.cursor.turn = (f.cursor.turn + 1) % len(f.cursor.positions)
	}
	return false, nil
}

// readList goes on with the walk through a list, or begins one if something
// became visible in it.
func (f *feed) readList(ctx context.Context, i int) (full bool, err error) {
	p := &f.cursor.positions[i]
	if p.To == 0 {
		complete, err := f.complete(ctx, i)
		if err != nil || complete <= p.From {
			return false, err
		}
		p.To = complete
	}
	for f.out.count < f.limit {
		q, err := f.query(i, p, f.limit-f.out.count)
		if err != nil {
			return false, err
		}
		found, err := f.find(ctx, i, q, p.To)
		if err != nil {
			return false, err
		}
		taken, err := f.take(ctx, i, q, found.Hits)
		if err != nil {
			return false, err
		}
		if taken < len(found.Hits) {
			return true, nil
		}
		if taken < q.Limit {
			*p = position{From: p.To}
			return false, nil
		}
	}
	return true, nil
}

// listAt is the i-th list of the feed.
func (f *feed) listAt(i int) *index.List {
	if i < len(f.kinds) {
		return f.lists[f.kinds[i]]
	}
	return f.gone
}

// complete is a time before which nothing becomes visible in a list any more, and
// the list has all that did.
func (f *feed) complete(ctx context.Context, i int) (value.Time, error) {
	answer, err := f.views.Query(ctx, f.r.Organization(), f.listAt(i), columnar.Query{Filter: columnar.Any()}, false)
	if answer.SyncFrom == 0 {
		return f.now.Add(-clockAge), err
	}
	return answer.SyncFrom, err
}

// query asks for what became visible in the list within its position, and what
// the principal may see of it.
func (f *feed) query(i int, p *position, limit int) (q columnar.Query, err error) {
	list, after := f.listAt(i), [16]byte(p.After)
	if i == len(f.kinds) {
		kinds := make([]string, len(f.kinds))
		for n, kind := range f.kinds {
			kinds[n] = string(kind)
		}
		kept := f.now.Add(-commerce.TombstoneAge)
		q.Filter = columnar.All(columnar.In(list.Schema.Col("kind"), kinds...), columnar.Within(list.Schema.Col("deletedAt"), int64(kept), math.MaxInt64))
	} else {
		every, err := commerce.ListOf(f.kinds[i]).Parse(nil)
		if err != nil {
			return q, err
		}
		scope := commerce.SiteScope{Site: f.r.Site, Sites: f.r.Principal.SiteIDs}
		if q, err = commerce.IndexQuery(f.kinds[i], every, scope, nil, f.now, commerce.Fields{}); err != nil {
			return q, err
		}
	}
	return columnar.Query{
		Filter: columnar.All(q.Filter, columnar.VisibleWithin(int64(p.From), int64(p.To))), AfterID: &after, Limit: limit,
	}, nil
}

// find asks the view and, where that is behind the time, what the list has now.
func (f *feed) find(ctx context.Context, i int, q columnar.Query, complete value.Time) (lists.Answer, error) {
	answer, err := f.views.Query(ctx, f.r.Organization(), f.listAt(i), q, false)
	if err == nil && answer.SyncFrom < complete {
		answer, err = f.views.Query(ctx, f.r.Organization(), f.listAt(i), q, true)
	}
	return answer, err
}

// take adds the hits of a list to the answer, as far as they fit, and moves its
// position behind them.
func (f *feed) take(ctx context.Context, i int, q columnar.Query, hits []columnar.Hit) (taken int, err error) {
	var near map[value.ID]*commerce.Stored
	if i < len(f.kinds) {
		if near, err = f.store.NearRecords(ctx, f.r.Organization(), f.kinds[i], lists.HitIDs(hits), maxPageBytes-len(f.out.body)); err != nil {
			return 0, err
		}
	}
	p := &f.cursor.positions[i]
	for batch := range slices.Chunk(hits, readBatch) {
		entries, err := f.encode(ctx, i, q, batch, near)
		if err != nil {
			return taken, err
		}
		for _, entry := range entries {
			before := p.After
			// A position is behind all deletions with an id, or before them.
			if id := hits[taken].ID; taken+1 == len(hits) || hits[taken+1].ID != id {
				p.After = id
			}
			if entry != nil && !f.add(entry) {
				p.After = before
				return taken, nil
			}
			taken++
		}
	}
	return taken, nil
}

// encode makes the changes of hits, in their order; nil for one that is left out.
func (f *feed) encode(
	ctx context.Context, i int, q columnar.Query, hits []columnar.Hit, near map[value.ID]*commerce.Stored,
) ([][]byte, error) {
	entries := make([][]byte, len(hits))
	if i < len(f.kinds) {
		return entries, f.puts(ctx, f.kinds[i], q, hits, near, entries)
	}
	return entries, f.deletes(ctx, hits, entries)
}

// puts makes the entries of hits in the list of a kind, and reads what is not in near.
func (f *feed) puts(
	ctx context.Context, kind commerce.Kind, q columnar.Query, hits []columnar.Hit, near map[value.ID]*commerce.Stored, entries [][]byte,
) error {
	others := slices.DeleteFunc(lists.HitIDs(hits), func(id value.ID) bool { return near[id] != nil })
	stored, err := f.store.Records(ctx, f.r.Organization(), kind, others)
	if err != nil {
		return err
	}
	for i, hit := range hits {
		s := cmp.Or(near[hit.ID], stored[hit.ID])
		shown, err := f.shows(s, query{Query: q, kind: kind}, hit)
		if err != nil {
			return err
		}
		if shown {
			entry := appendChange(make([]byte, 0, len(s.Doc)+2*pageOverhead), kind, commerce.OpPut, s.ID, s.Revision)
			entries[i] = commerce.AppendShape(entry, kind, s.Doc, f.now)
		}
	}
	return nil
}

// deletes makes the entries of hits in the list of deletions.
func (f *feed) deletes(ctx context.Context, hits []columnar.Hit, entries [][]byte) error {
	ids, stored := map[commerce.Kind][]value.ID{}, map[commerce.Kind]map[value.ID]*commerce.Stored{}
	for _, hit := range hits {
		if d, ok := commerce.DeletionOf(hit); ok {
			ids[d.Kind] = append(ids[d.Kind], d.ID)
		}
	}
	for kind := range ids {
		var err error
		if stored[kind], err = f.store.Records(ctx, f.r.Organization(), kind, ids[kind]); err != nil {
			return err
		}
	}
	for i, hit := range hits {
		d, ok := commerce.DeletionOf(hit)
		s := stored[d.Kind][d.ID]
		if !ok || s != nil && !s.Deleted {
			continue
		}
		if s != nil {
			d.DeletedAt = s.Revision
		}
		entries[i] = append(appendChange(nil, d.Kind, commerce.OpDelete, d.ID, d.DeletedAt), "null"...)
	}
	return nil
}

// appendChange begins a [Change], up to its object.
func appendChange(dst []byte, kind commerce.Kind, op commerce.Op, id value.ID, at value.Time) []byte {
	return append(dst, `{"kind":"`+string(kind)+`","op":"`+string(op)+`","id":"`+id.String()+`","changedAt":"`+at.String()+`","object":`...)
}

// add ends a change with the cursor, which is behind it, and adds it, if it fits.
func (f *feed) add(entry []byte) bool {
	f.cursor.changes++
	entry = f.cursor.append(append(entry, `,"cursor":"`...), f.scope, f.kindBits)
	if f.out.add(append(entry, `"}`...)) {
		return true
	}
	f.cursor.changes--
	return false
}

// page writes the answer.
func (f *feed) page(more bool) *api.Response {
	next := string(f.cursor.append(nil, f.scope, f.kindBits))
	header := http.Header{api.CursorHeader: {next}}
	if more {
		header.Set("Link", "<"+f.r.LinkTo(afterParam, next)+`>; rel="next"`)
	}
	if f.out.mediaType == api.JSON {
		f.out.end(`{"next":"` + next + `","more":` + strconv.FormatBool(more) + `}`)
	}
	return f.out.answer(header)
}
