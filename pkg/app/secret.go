package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/sealed"
)

// The versions of a secret that Secrets Manager keeps by these names: a new
// value makes the current one the previous.
const (
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
)

// readSecret reads the live texts of a secret, the current one first and, after
// a rotation, the previous, and when the newer of them was made.
func readSecret(ctx context.Context, cfg aws.Config, arn string) (texts []string, created time.Time, err error) {
	client := secretsmanager.NewFromConfig(cfg)
	for _, stage := range []string{stageCurrent, stagePrevious} {
		text, made, err := secretText(ctx, client, arn, stage)
		var none *types.ResourceNotFoundException
		switch {
		case stage == stagePrevious && errors.As(err, &none):
			return texts, created, nil // it was never rotated
		case err != nil:
			return nil, created, fmt.Errorf("%s: %w", stage, err)
		}
		texts = append(texts, text)
		if made.After(created) {
			created = made
		}
	}
	return texts, created, nil
}

// secretText reads a version of a secret, and when that was made.
func secretText(ctx context.Context, client *secretsmanager.Client, arn, stage string) (text string, created time.Time, err error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn, VersionStage: &stage})
	if err != nil {
		return "", created, err
	}
	if text = aws.ToString(out.SecretString); text == "" {
		return "", created, errors.New("the secret is empty")
	}
	return text, aws.ToTime(out.CreatedDate), nil
}

// secrets returns the box that keeps webhook secrets and answers. From Secrets
// Manager it gets a new key without a restart.
func (d *Dependencies) secrets(ctx context.Context) (*sealed.Box, error) {
	switch {
	case d.Config.OlderServiceKey != nil:
		return sealed.NewBox(d.Config.ServiceKey, d.Config.OlderServiceKey)
	case d.Config.ServiceKey != nil:
		return sealed.NewBox(d.Config.ServiceKey)
	case d.Config.ServiceKeySecretARN == "":
		return nil, errors.New("neither SERVICE_KEY nor SERVICE_KEY_SECRET_ARN is set")
	}
	return sealed.Load(ctx, func(ctx context.Context) ([][]byte, error) {
		keys, _, err := ServiceKeys(ctx, d.AWS, d.Config.ServiceKeySecretARN)
		return keys, err
	}, d.Clock)
}

// ServiceKeys reads the service keys from a secret in Secrets Manager, the
// current one first, and when the newest of them was made. A key is derived
// from the secret's text, which Secrets Manager generates: 64 random letters
// and digits, more than the key holds.
func ServiceKeys(ctx context.Context, cfg aws.Config, arn string) (keys [][]byte, created time.Time, err error) {
	texts, created, err := readSecret(ctx, cfg, arn)
	if err != nil {
		return nil, created, fmt.Errorf("read the service key: %w", err)
	}
	for _, text := range texts {
		key := sha256.Sum256([]byte(text))
		keys = append(keys, key[:])
	}
	return keys, created, nil
}

// signingSecrets reads what the keys of application tokens come from.
func (d *Dependencies) signingSecrets(ctx context.Context) (s apptoken.Secrets, err error) {
	texts := strings.Fields(d.Config.SigningSecrets)
	if len(texts) == 0 {
		if d.Config.SigningSecretARN == "" {
			return s, errors.New("neither SIGNING_SECRETS nor SIGNING_SECRET_ARN is set")
		}
		if texts, s.Created, err = readSecret(ctx, d.AWS, d.Config.SigningSecretARN); err != nil {
			return s, fmt.Errorf("read the signing secret: %w", err)
		}
	}
	s.Current = texts[0]
	if len(texts) > 1 {
		s.Previous = texts[1]
	}
	return s, nil
}

// sharedSecrets reads the secrets of HS256 tokens; nil without a secret in
// Secrets Manager.
func (d *Dependencies) sharedSecrets() auth.SharedSecrets {
	if d.Config.HS256SecretARN == "" {
		return nil
	}
	return func(ctx context.Context) ([]string, error) {
		secrets, _, err := readSecret(ctx, d.AWS, d.Config.HS256SecretARN)
		if err != nil {
			return nil, fmt.Errorf("read the HS256 secret: %w", err)
		}
		return secrets, nil
	}
}
