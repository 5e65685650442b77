package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/commerce-integration/service/pkg/sealed"
)

// secrets returns the box that keeps webhook secrets.
func (b *Dependencies) secrets(ctx context.Context) (*sealed.Box, error) {
	key := b.Config.ServiceKey
	if key == nil {
		var err error
		if key, err = b.fetchServiceKey(ctx); err != nil {
			return nil, err
		}
	}
	return sealed.NewBox(key)
}

// fetchServiceKey derives the key from the secret's text, which Secrets
// Manager generates: 64 random letters and digits, more than the key holds.
func (b *Dependencies) fetchServiceKey(ctx context.Context) ([]byte, error) {
	if b.Config.ServiceKeySecretARN == "" {
		return nil, errors.New("neither SERVICE_KEY nor SERVICE_KEY_SECRET_ARN is set")
	}
	out, err := secretsmanager.NewFromConfig(b.AWS).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{
		SecretId: &b.Config.ServiceKeySecretARN,
	})
	if err != nil {
		return nil, fmt.Errorf("read the service key: %w", err)
	}
	text := aws.ToString(out.SecretString)
	if text == "" {
		return nil, errors.New("read the service key: the secret is empty")
	}
	key := sha256.Sum256([]byte(text))
	return key[:], nil
}
