package app

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Config is the environment of the functions, as template.yaml sets it.
type Config struct {
	TableName              string `env:"TABLE_NAME"`
	RecordsQueueURL        string `env:"RECORDS_QUEUE_URL"`
	RecordsDLQURL          string `env:"RECORDS_DLQ_URL"`
	ImportsQueueURL        string `env:"IMPORTS_QUEUE_URL"`
	DeliveriesQueueURL     string `env:"DELIVERIES_QUEUE_URL"`
	SlowDeliveriesQueueURL string `env:"SLOW_DELIVERIES_QUEUE_URL"`
	IndexJobsQueueURL      string `env:"INDEX_JOBS_QUEUE_URL"`
	ParkQueueURL           string `env:"PARK_QUEUE_URL"`

	// EndpointAlertTopicARN is the SNS topic that hears of every alert; "" for
	// none.
	EndpointAlertTopicARN string `env:"ENDPOINT_ALERT_TOPIC_ARN"`

	JWTIssuer   string `env:"JWT_ISSUER"`
	JWTAudience string `env:"JWT_AUDIENCE"`
	JWKSURL     string `env:"JWKS_URL"`
	// HS256Secret verifies HS256 tokens, for local runs; when it is empty the
	// secret comes from Secrets Manager, if HS256SecretARN names one.
	HS256Secret       string `env:"JWT_HS256_SECRET"`
	HS256SecretARN    string `env:"JWT_HS256_SECRET_ARN"`
	OrganizationClaim string `env:"ORGANIZATION_CLAIM" default:"organizationId"`
	DefaultRole       string `env:"DEFAULT_ROLE" default:"DEVELOPER"`

	// ServiceKey encrypts webhook secrets at rest: 32 bytes, base64 in
	// SERVICE_KEY; when that is empty it comes from Secrets Manager. After a
	// space comes the key before, OlderServiceKey, if there is one.
	ServiceKey          []byte
	OlderServiceKey     []byte
	ServiceKeySecretARN string `env:"SERVICE_KEY_SECRET_ARN"`

	// SigningSecrets are the texts that the keys of application tokens come from,
	// the current one and, after a space, the previous: for local runs. When
	// they are empty they come from Secrets Manager.
	SigningSecrets   string `env:"SIGNING_SECRETS"`
	SigningSecretARN string `env:"SIGNING_SECRET_ARN"`

	// PortalClientID is the portal's client at the issuer of users' tokens, "" when
	// nobody signs in there; PortalScope the scopes that it asks for, separated by
	// commas. PortalTokenOrigin is the origin of the token endpoint where that is not
	// the issuer's.
	PortalClientID    string `env:"PORTAL_CLIENT_ID"`
	PortalScope       string `env:"PORTAL_SCOPE" default:"openid"`
	PortalTokenOrigin string `env:"PORTAL_TOKEN_ORIGIN"`
	// PortalFrames are the origins whose pages may frame portal sessions, and
	// PortalBrand how these look: both as [portal.ParseEmbedding] reads them.
	PortalFrames string `env:"PORTAL_FRAMES"`
	PortalBrand  string `env:"PORTAL_BRAND"`

	// BasePath is the first segment of paths below a domain of one's own, ""
	// for none.
	BasePath string `env:"BASE_PATH"`
	// AllowedOrigins are those whose scripts may use the API, separated by
	// commas.
	AllowedOrigins string `env:"ALLOWED_ORIGINS"`

	// MetricsNamespace is where the functions' metrics are in CloudWatch; "" for
	// none. MetricsByOrganization is "true" for some of each organization, too.
	MetricsNamespace      string `env:"METRICS_NAMESPACE"`
	MetricsByOrganization string `env:"METRICS_BY_ORGANIZATION" default:"false"`

	// ARNEndpoints says which queues and buses webhooks may go to: none,
	// other-accounts or all-accounts. AccountID is the service's own.
	ARNEndpoints string `env:"ARN_ENDPOINTS" default:"none"`
	AccountID    string `env:"ACCOUNT_ID"`
	// SQSEndpoint and EventBridgeEndpoint are the URLs of other servers than
	// AWS's for these queues and buses; the SDK reads its own.
	SQSEndpoint         string `env:"AWS_ENDPOINT_URL_SQS"`
	EventBridgeEndpoint string `env:"AWS_ENDPOINT_URL_EVENTBRIDGE"`

	// EndpointAttempts is how many attempts of an endpoint may be under way in the
	// main lane: ENDPOINT_ATTEMPTS.
	EndpointAttempts int
	// AllowPrivateTargets lets webhooks reach loopback and private
	// addresses, for local runs: ALLOW_PRIVATE_TARGETS.
	AllowPrivateTargets bool
	// OrganizationRateLimit is the requests per 60 s of an organization:
	// ORGANIZATION_RATE_LIMIT; 0 when it is empty, which means
	// [auth.OrganizationRateLimit].
	OrganizationRateLimit int
	// RefusedPorts are those that no webhook goes to: REFUSED_PORTS, separated
	// by commas; nil when it is empty, which means [outbound.RefusedPorts].
	RefusedPorts []uint16
}

// ServiceKeySize is the length of the service key in bytes (AES-256).
const ServiceKeySize = 32

// ConfigFrom reads the configuration through getenv, such as [os.Getenv].
func ConfigFrom(getenv func(string) string) (Config, error) {
	var cfg Config
	v := reflect.ValueOf(&cfg).Elem()
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag; tag.Get("env") != "" {
			v.Field(i).SetString(cmp.Or(getenv(tag.Get("env")), tag.Get("default")))
		}
	}
	var err error
	if cfg.TableName == "" {
		err = errors.New("TABLE_NAME is not set")
	}
	var parseErr error
	if cfg.AllowPrivateTargets, parseErr = strconv.ParseBool(cmp.Or(getenv("ALLOW_PRIVATE_TARGETS"), "false")); parseErr != nil {
		err = errors.Join(err, fmt.Errorf("ALLOW_PRIVATE_TARGETS: %w", parseErr))
	}
	if cfg.EndpointAttempts, parseErr = strconv.Atoi(cmp.Or(getenv("ENDPOINT_ATTEMPTS"), "200")); parseErr != nil {
		err = errors.Join(err, fmt.Errorf("ENDPOINT_ATTEMPTS: %w", parseErr))
	}
	if cfg.OrganizationRateLimit, parseErr = strconv.Atoi(cmp.Or(getenv("ORGANIZATION_RATE_LIMIT"), "0")); parseErr != nil {
		err = errors.Join(err, fmt.Errorf("ORGANIZATION_RATE_LIMIT: %w", parseErr))
	}
	if cfg.RefusedPorts, parseErr = ports(getenv("REFUSED_PORTS")); parseErr != nil {
		err = errors.Join(err, fmt.Errorf("REFUSED_PORTS: %w", parseErr))
	}
	if cfg.ServiceKey, cfg.OlderServiceKey, parseErr = serviceKeys(getenv("SERVICE_KEY")); parseErr != nil {
		err = errors.Join(err, parseErr)
	}
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	return cfg, nil
}

func serviceKeys(text string) (current, older []byte, err error) {
	var keys [2][]byte
	fields := strings.Fields(text)
	for i, field := range fields {
		var key []byte
		if key, err = base64.StdEncoding.DecodeString(field); err != nil || len(key) != ServiceKeySize || i >= len(keys) {
			return nil, nil, fmt.Errorf("SERVICE_KEY must be %d bytes in base64, or two such keys with a space between them", ServiceKeySize)
		}
		keys[i] = key
	}
	return keys[0], keys[1], nil
}

func ports(text string) ([]uint16, error) {
	if text == "" {
		return nil, nil
	}
	var all []uint16
	for part := range strings.SplitSeq(text, ",") {
		port, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil {
			return nil, err
		}
		all = append(all, uint16(port))
	}
	return all, nil
}
