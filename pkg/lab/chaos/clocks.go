package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// apart takes the place of pkg/app/clock.go where clocks differ. The authorizer's does not: it compares tokens' times
// with their issuer's clock.
const apart = `package app

import (
	"math/rand/v2"
	"os"
	"time"
)

var offset = rand.N(time.Duration(%[1]d)) - %[1]d/2

func clock() time.Time {
	if os.Getenv("AWS_LAMBDA_FUNCTION_NAME") == "authorizer" {
		return time.Now()
	}
	return time.Now().Add(offset)
}
`

// overlay returns the variable by which the service builds its functions with clocks that differ.
func (r *run) overlay(dir string) (string, error) {
	original, err := filepath.Abs(filepath.Join(filepath.Dir(r.Template), "pkg", "app", "clock.go"))
	if err != nil {
		return "", err
	}
	clock, list := filepath.Join(dir, "clock.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(clock, fmt.Appendf(nil, apart, r.Clocks), 0o600); err != nil {
		return "", fmt.Errorf("write the functions' clock: %w", err)
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{original: clock}})
	if err == nil {
		err = os.WriteFile(list, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("write the functions' clock: %w", err)
	}
	return "GOFLAGS=-overlay=" + list, nil
}
