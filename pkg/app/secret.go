package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// secretPair are the two live texts of a secret.
type secretPair struct {
	current, previous string    // previous is "" before the first rotation
	created           time.Time // when the newer of them was made
}

// readPair reads the current and the previous version of a secret.
func readPair(ctx context.Context, cfg aws.Config, arn string) (p secretPair, err error) {
	client := secretsmanager.NewFromConfig(cfg)
	if p.current, p.created, err = secretText(ctx, client, arn, stageCurrent); err != nil {
		return p, err
	}
	previous, created, err := secretText(ctx, client, arn, stagePrevious)
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		return p, nil // it was never rotated
	}
	if err != nil {
		return p, fmt.Errorf("the previous version: %w", err)
	}
	p.previous = previous
	if created.After(p.created) {
		p.created = created
	}
	return p, nil
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

// lazyBox loads the box when something is to be opened, and again after an
// error.
type lazyBox struct {
	load func(context.Context) (*sealed.Box, error)

	mu  sync.Mutex
	box *sealed.Box
}

func (l *lazyBox) open(ctx context.Context, text, purpose string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.box == nil {
		box, err := l.load(ctx)
		if err != nil {
			return nil, err
		}
		l.box = box
	}
	return l.box.Open(text, purpose)
}

// ServiceKeys reads the service keys from a secret in Secrets Manager, the
// current one first, and when the newest of them was made. A key is derived
// from the secret's text, which Secrets Manager generates: 64 random letters
// and digits, more than the key holds.
func ServiceKeys(ctx context.Context, cfg aws.Config, arn string) (keys [][]byte, created time.Time, err error) {
	pair, err := readPair(ctx, cfg, arn)
	if err != nil {
		return nil, created, fmt.Errorf("read the service key: %w", err)
	}
	keys = append(keys, derivedKey(pair.current))
	if pair.previous != "" {
		keys = append(keys, derivedKey(pair.previous))
	}
	return keys, pair.created, nil
}

func derivedKey(text string) []byte {
	key := sha256.Sum256([]byte(text))
	return key[:]
}

// signingSecrets reads what the keys of application tokens come from.
func (d *Dependencies) signingSecrets(ctx context.Context) (s apptoken.Secrets, err error) {
	if given := strings.Fields(d.Config.SigningSecrets); len(given) > 0 {
		s.Current = given[0]
		if len(given) > 1 {
			s.Previous = given[1]
		}
		return s, nil
	}
	if d.Config.SigningSecretARN == "" {
		return s, errors.New("neither SIGNING_SECRETS nor SIGNING_SECRET_ARN is set")
	}
	pair, err := readPair(ctx, d.AWS, d.Config.SigningSecretARN)
	if err != nil {
		return s, fmt.Errorf("read the signing secret: %w", err)
	}
	return apptoken.Secrets{Current: pair.current, Previous: pair.previous, Created: pair.created}, nil
}

// sharedSecrets reads the secrets of HS256 tokens; nil without a secret in
// Secrets Manager.
func (d *Dependencies) sharedSecrets() auth.SharedSecrets {
	if d.Config.HS256SecretARN == "" {
		return nil
	}
	return func(ctx context.Context) ([]string, error) {
		pair, err := readPair(ctx, d.AWS, d.Config.HS256SecretARN)
		if err != nil {
			return nil, fmt.Errorf("read the HS256 secret: %w", err)
		}
		secrets := []string{pair.current}
		if pair.previous != "" {
			secrets = append(secrets, pair.previous)
		}
		return secrets, nil
	}
}
