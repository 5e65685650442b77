package window

// Usage counts the requests of one day of UTC.
type Usage struct {
	Requests     int64 // admitted, as far as leases show
	ClientErrors int64 // of them, those answered 4xx
	RateLimited  int64 // that were refused
}

// Add counts what another one counted.
func (u *Usage) Add(o Usage) {
	u.Requests += o.Requests
	u.ClientErrors += o.ClientErrors
	u.RateLimited += o.RateLimited
}

const daySeconds = 24 * 60 * 60

// Day is the day of UTC in which the bucket begins, counted from 1970. A
// window's Usage is that of its head's day.
func Day(bucket int64) int64 { return Start(bucket).Unix() / daySeconds }
