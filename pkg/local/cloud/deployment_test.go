//go:build cloud

package cloud_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/child"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

const (
	root     = "../../.."
	audience = "commerce"
)

// deployment is the service on an emulator, with an identity provider beside it.
type deployment struct {
	emulator string // its URL
	outputs  map[string]string
	calls    *recorder
	issuer   *issuer.Issuer
	away     atomic.Bool // the identity provider answers nothing
	keys     *httptest.Server
}

// deploy starts an emulator and deploys the service onto it. Both end with the test.
func deploy(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{}
	d.startIssuer(t)
	d.startEmulator(t)
	d.outputs = map[string]string{}
	decode(t, d.tool(t, "deploy", d.parameters()...), &d.outputs)
	return d
}

// parameters are those of the stack, with others beside them.
func (d *deployment) parameters(others ...string) []string {
	return append([]string{
		"JwtIssuer=" + d.keys.URL, "JwtAudience=" + audience, "JwksUrl=" + d.keys.URL,
		"AlarmTopicArn=arn:aws:sns:us-east-1:000000000000:alarms",
		"AllowPrivateTargets=true", "DeletionProtection=false", "ArnEndpoints=all-accounts",
	}, others...)
}

func (d *deployment) startIssuer(t *testing.T) {
	t.Helper()
	d.keys = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		keys, err := d.issuer.JWKS()
		if err != nil || d.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Write(keys)
	}))
	t.Cleanup(d.keys.Close)
	var err error
	if d.issuer, err = issuer.New(issuer.Config{Issuer: d.keys.URL, Audience: audience, Clock: time.Now}); err != nil {
		t.Fatal(err)
	}
}

// startEmulator starts MiniStack with IAM enforced for each role. The functions reach it through the recorder.
func (d *deployment) startEmulator(t *testing.T) {
	t.Helper()
	address := freeAddress(t)
	d.emulator = "http://" + address
	d.calls = newRecorder(t, d.emulator)
	_, port, _ := strings.Cut(address, ":")
	log := &bytes.Buffer{}
	cmd := exec.Command(file(t, ".build/ministack/bin/ministack"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), log, log
	// Functions inherit this environment.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "TMPDIR=" + cmd.Dir, "GATEWAY_PORT=" + port, "BIND_HOST=127.0.0.1",
		"AUTH=true", "LAMBDA_EXECUTOR=local", "LAMBDA_ACCOUNT_CONCURRENCY=1000",
		"IOT_MTLS_ENABLED=false", "SFTP_ENABLED=false", "AWS_ENDPOINT_URL=" + d.calls.server.URL,
	}
	child.Apart(cmd) // its functions are in its process group, and end with that
	cmd.WaitDelay = time.Second
	ended, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		<-ended                                             // how shows in its log
		if t.Failed() {
			t.Logf("log of the emulator:\n%s", log)
		}
	})
	await(t, "the emulator", func() bool {
		resp, err := http.Get(d.emulator + "/_ministack/health")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// tool runs .tools/cloud.py on the emulator and returns what it prints.
func (d *deployment) tool(t *testing.T, command string, arguments ...string) []byte {
	t.Helper()
	cmd := d.python(t, append([]string{".tools/cloud.py", command}, arguments...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, said.Bytes())
	}
	return out
}

// python is a program for the emulator as its account of AWS.
func (d *deployment) python(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), file(t, ".build/sam/bin/python"), arguments...)
	cmd.Dir = file(t, ".")
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+d.emulator, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=", "AWS_DEFAULT_REGION=us-east-1")
	return cmd
}

// token signs a token of an organization's user.
func (d *deployment) token(t *testing.T, organization value.ID, roles ...auth.Role) string {
	t.Helper()
	token, err := d.issuer.Sign(issuer.Grant{Subject: value.NewID().String(), OrganizationID: organization, Roles: roles, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// queues returns a client of the queues, as the operator.
func (d *deployment) queues() *sqs.Client {
	return sqs.New(sqs.Options{BaseEndpoint: &d.emulator, Region: "us-east-1", Credentials: operator()})
}

// store returns the table, as the operator.
func (d *deployment) store() *dynamo.Table {
	client := dynamodb.New(dynamodb.Options{BaseEndpoint: &d.emulator, Region: "us-east-1", Credentials: operator()})
	return dynamo.New(client, d.outputs["TableName"], time.Now)
}

func operator() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider("test", "test", "")
}

// base is the URL of the API on the emulator, which takes its id and its stage from the path.
func (d *deployment) base(t *testing.T) string {
	t.Helper()
	deployed, err := url.Parse(d.outputs["ApiUrl"])
	if err != nil {
		t.Fatal(err)
	}
	api, _, _ := strings.Cut(deployed.Host, ".")
	return fmt.Sprintf("%s/restapis/%s%s/_user_request_", d.emulator, api, deployed.Path)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// file returns the path of a file of the repository.
func file(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// patience is how long the test waits for what is to happen; the sweeper runs once a minute.
const patience = 2 * time.Minute

// await polls until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
