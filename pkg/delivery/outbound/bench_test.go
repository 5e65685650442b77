package outbound_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
)

// The protocols beside one another: 32 requests of 1 KB at a time to one
// receiver over TLS, with kept connections and with a new one for every
// request. CPU is that of client and receiver together.
func BenchmarkProtocols(b *testing.B) {
	for _, row := range []struct {
		name        string
		http2, kept bool
	}{
		{"HTTP1/kept", false, true},
		{"HTTP2/kept", true, true},
		{"HTTP1/new", false, false},
		{"HTTP2/new", true, false},
	} {
		b.Run(row.name, func(b *testing.B) {
			now := time.Now()
			cert, pool := certificate(b, now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1")
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if !row.kept {
					w.Header().Set("Connection", "close")
				}
			}))
			srv.Config.ErrorLog = quiet()
			srv.EnableHTTP2 = true
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
			srv.StartTLS()
			defer srv.Close()
			c := outbound.New(outbound.Config{AllowPrivateTargets: true, RootCAs: pool})
			if row.http2 {
				c.OfferHTTP2()
			}
			body := make([]byte, 1024)
			b.SetParallelism(16) // of each processor
			b.ReportAllocs()
			before := cputime.Used()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					out := c.Post(b.Context(), srv.URL, nil, body, 10*time.Second)
					if out.Kind != outbound.Answered {
						b.Errorf("outcome %+v", out)
					}
				}
			})
			b.ReportMetric(float64((cputime.Used()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
