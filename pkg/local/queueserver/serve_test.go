package queueserver_test

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"testing"

	"github.com/commerce-integration/service/pkg/local/queueserver"
)

// The test binary is also a server, for the tests that kill one and for trying it by hand:
//
//	go test ./pkg/local/queueserver -serve 127.0.0.1:9324 -dir /tmp/queues
//
// It prints its address and serves until it is interrupted.
var (
	serveAddress = flag.String("serve", "", "serve queues at this address instead of running tests")
	serveDir     = flag.String("dir", "", "with -serve: the directory of the queues")
	serveCompact = flag.Int64("compact", 0, "with -serve: compact the journal at this many bytes")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *serveAddress == "" {
		os.Exit(m.Run())
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	s, err := queueserver.Open(*serveDir, &queueserver.Config{CompactBytes: *serveCompact})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *serveAddress)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	server := &http.Server{Handler: s.Handler()}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	go func() {
		<-stop
		_ = s.Close()
		_ = server.Close()
	}()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
