package app

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Config is the environment of the functions, as template.yaml sets it.
type Config struct {
	TableName              string // TABLE_NAME
	RecordsQueueURL        string // RECORDS_QUEUE_URL
	RecordsDLQURL          string // RECORDS_DLQ_URL
	ImportsQueueURL        string // IMPORTS_QUEUE_URL
	DeliveriesQueueURL     string // DELIVERIES_QUEUE_URL
	SlowDeliveriesQueueURL string // SLOW_DELIVERIES_QUEUE_URL
	IndexJobsQueueURL      string // INDEX_JOBS_QUEUE_URL
	ParkQueueURL           string // PARK_QUEUE_URL

	JWTIssuer         string // JWT_ISSUER
	JWTAudience       string // JWT_AUDIENCE
	JWKSURL           string // JWKS_URL
	HS256Secret       string // JWT_HS256_SECRET
	OrganizationClaim string // ORGANIZATION_CLAIM, default organizationId
	DefaultRole       string // DEFAULT_ROLE, default DEVELOPER

	// ServiceKey encrypts webhook secrets at rest: 32 bytes, base64 in
	// SERVICE_KEY; when it is empty it comes from Secrets Manager.
	ServiceKey          []byte
	ServiceKeySecretARN string // SERVICE_KEY_SECRET_ARN

	// AllowPrivateTargets lets webhooks reach loopback and private
	// addresses, for local runs: ALLOW_PRIVATE_TARGETS.
	AllowPrivateTargets bool
	// RefusedPorts are those that no webhook goes to: REFUSED_PORTS, separated
	// by commas; nil when it is empty, which stands for [outbound.RefusedPorts].
	RefusedPorts []uint16
}

// ServiceKeySize is the length of the service key in bytes (AES-256).
const ServiceKeySize = 32

// ConfigFrom reads the configuration through getenv, such as [os.Getenv].
func ConfigFrom(getenv func(string) string) (Config, error) {
	or := func(name, fallback string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return fallback
	}
	cfg := Config{
		TableName:              getenv("TABLE_NAME"),
		RecordsQueueURL:        getenv("RECORDS_QUEUE_URL"),
		RecordsDLQURL:          getenv("RECORDS_DLQ_URL"),
		ImportsQueueURL:        getenv("IMPORTS_QUEUE_URL"),
		DeliveriesQueueURL:     getenv("DELIVERIES_QUEUE_URL"),
		SlowDeliveriesQueueURL: getenv("SLOW_DELIVERIES_QUEUE_URL"),
		IndexJobsQueueURL:      getenv("INDEX_JOBS_QUEUE_URL"),
		ParkQueueURL:           getenv("PARK_QUEUE_URL"),

		JWTIssuer:           getenv("JWT_ISSUER"),
		JWTAudience:         getenv("JWT_AUDIENCE"),
		JWKSURL:             getenv("JWKS_URL"),
		HS256Secret:         getenv("JWT_HS256_SECRET"),
		OrganizationClaim:   or("ORGANIZATION_CLAIM", "organizationId"),
		DefaultRole:         or("DEFAULT_ROLE", "DEVELOPER"),
		ServiceKeySecretARN: getenv("SERVICE_KEY_SECRET_ARN"),
	}
	var err error
	if cfg.TableName == "" {
		err = errors.New("TABLE_NAME is not set")
	}
	var parseErr error
	if cfg.AllowPrivateTargets, parseErr = strconv.ParseBool(or("ALLOW_PRIVATE_TARGETS", "false")); parseErr != nil {
		err = errors.Join(err, fmt.Errorf("ALLOW_PRIVATE_TARGETS: %w", parseErr))
	}
	if cfg.RefusedPorts, parseErr = ports(getenv("REFUSED_PORTS")); parseErr != nil {
		err = errors.Join(err, fmt.Errorf("REFUSED_PORTS: %w", parseErr))
	}
	if text := getenv("SERVICE_KEY"); text != "" {
		if cfg.ServiceKey, parseErr = base64.StdEncoding.DecodeString(text); parseErr != nil || len(cfg.ServiceKey) != ServiceKeySize {
			err = errors.Join(err, fmt.Errorf("SERVICE_KEY must be %d bytes in base64", ServiceKeySize))
		}
	}
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	return cfg, nil
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
