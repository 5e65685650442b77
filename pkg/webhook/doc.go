// Package webhook is the domain of webhooks: endpoints and their
// subscriptions, deliveries and their history, payloads, signatures, the
// schedule of retries, and the health of endpoints. Its functions compute the
// next state from the present one, a time and an outcome. They read no clock,
// table or network, and the same inputs give the same identifiers and bytes
// everywhere. The table stores the states, the worker makes the attempts, and
// the sweeper looks at due ones.
//
// # The states of a delivery
//
// A delivery is one event for one endpoint, the API's WebhookEvent.
//
//	     NewDelivery                      NewDelivery
//	          |                                |  the endpoint must
//	          v          Hold                  v  not be asked
//	     +---------+ ----------------->  +----------+
//	+--> | PENDING |                     |   HELD   |
//	|    +---------+ <-----------------  +----------+
//	|     | |  | |    Resume, Requeue,         |
//	+-----+ |  | |    …AsProbe                 | Cancel
//	 Record:|  | |                             v
//	 retry  |  | |      Cancel           +-----------+
//	        |  | +---------------------> | CANCELLED |
//	        |  |                         +-----------+
//	        |  | Record: no retry left, refused, or a test
//	        |  +-----------------------> FAILED
//	        | Record: answered 2xx
//	        +--------------------------> DELIVERED
//
// The worker calls Record after an attempt, Hold when the endpoint is PAUSED,
// DISABLED or suspended or its circuit is open, Postpone when the endpoint is busy,
// and Cancel when the endpoint or its application was deleted. The counter calls
// ProbeNext for a probe that comes within a minute. The sweeper calls Resume when a circuit has
// closed, ResumeAsProbe for a circuit's trial attempt, Requeue for the HELD and
// FAILED deliveries of a recovery, and Cancel for the HELD ones of a deleted
// endpoint. The API's retry of one delivery calls Requeue in every
// state but PENDING, and RequeueAsProbe while the circuit is open.
//
// Who ends a hold depends on its reason. CIRCUIT_OPEN ends by itself: the sweeper
// makes an old held delivery a probe, or the counter one that has just failed
// where the wait is short, or the owner chooses one, and a success sends the
// others. PAUSED, DISABLED and SUSPENDED last until the owner has activated the
// endpoint or the application and asks for a recovery.
//
// Where few events of an organization come together, a delivery is only in its first
// message, and stored with its first outcome, or before that message has to wait. All
// others are stored first.
//
// A PENDING delivery reaches its next attempt in one of two ways: by the
// queue message that it names, or by its due mark, the time at which the
// sweeper looks at it. It has a due mark when the wait is longer than a
// message is kept, when its endpoint is busy, or when its message may not have been
// sent.
//
// # The health of an endpoint
//
// The worker writes the outcome of an attempt into the delivery, and nothing else.
// Package counter adds the outcomes to the endpoint's tally, from the table's stream:
// its counters, and its health, which is the failed attempts in a row, and how those
// of the last five minutes went. The health decides the endpoint's routing: whether
// its circuit opens, which holds deliveries except for a probe now and then, which
// lane its deliveries take, and whether it is disabled. All of this follows an
// attempt by a second or two, and by as much as the stream lags. Only a 410 disables
// an endpoint at once.
package webhook
