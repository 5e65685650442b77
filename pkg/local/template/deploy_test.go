package template

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// samThatShowsItsArguments has deployed a state with one output.
const samThatShowsItsArguments = `#!/bin/sh
case $1 in
list) echo '[{"OutputKey": "TableName", "OutputValue": "a-table", "Description": "of '"$4"'"}]' ;;
*) printf '%s\n' "$@" "in ${AWS_DEFAULT_REGION:-}" ;;
esac
`

const unset = "not set, so as deployed before or by default:"

// make deploy is run with a sam that shows its arguments.
func TestMakeDeployPassesWhatIsSet(t *testing.T) {
	common := []string{"JWT_ISSUER=https://issuer.example", "JWT_AUDIENCE=commerce"}
	for name, test := range map[string]struct {
		variables []string
		want      []string // "" is refused
		without   string
	}{
		"a JWKS URL":          {append(common, "JWKS_URL=https://issuer.example/keys"), []string{"JwtIssuer=https://issuer.example", "JwtAudience=commerce", "JwksUrl=https://issuer.example/keys"}, "JwtHs256Secret"},
		"a secret only":       {append(common, "JWT_HS256_SECRET_ARN=arn:of-32-bytes"), []string{"JwtHs256SecretArn=arn:of-32-bytes"}, "JwksUrl"},
		"both":                {append(common, "JWKS_URL=u", "JWT_HS256_SECRET_ARN=arn:of-32-bytes"), []string{"JwksUrl=u", "JwtHs256SecretArn=arn:of-32-bytes"}, "confirm"},
		"a continuous run":    {append(common, "JWKS_URL=u", "CI=true"), []string{"--no-confirm-changeset"}, "JwtHs256Secret"},
		"a short secret":      {append(common, "JWKS_URL=u", "JWT_HS256_SECRET_ARN=arn:of-31-bytes"), nil, "JwksUrl"},
		"neither":             {common, nil, ""},
		"the state's outputs": {append(common, "JWKS_URL=u", "STACK=shop"), []string{"pkg/app/state/state.yaml", "shop-state", "template.yaml", "shop", "TableName=a-table"}, "LogRetentionDays"},
		"parameters":          {append(common, "JWKS_URL=u", "PARAMETERS=LogRetentionDays=7"), []string{"LogRetentionDays=7"}, "JwtHs256Secret"},
		"a parameter of none": {append(common, "JWKS_URL=u", "PARAMETERS=AddressRates=600"), nil, "state.yaml"},
		"a text":              {append(common, "JWKS_URL=u", "PARAMETERS=AddressRate"), nil, "state.yaml"},
		"no safety":           {append(common, "JWKS_URL=u"), []string{unset + " AlarmTopicArn AccountConcurrency AuthorizerConcurrency DevelopersConcurrency WebhooksConcurrency ApiConcurrency AddressRate AccessLogs"}, ""},
		"some safety":         {append(common, "JWKS_URL=u", "PARAMETERS=AddressRate=600 AccessLogs=none"), []string{unset + " AlarmTopicArn AccountConcurrency AuthorizerConcurrency DevelopersConcurrency WebhooksConcurrency ApiConcurrency"}, ""},
		"production":          {append(common, "JWKS_URL=u", "PROFILE=production", "PARAMETERS=AlarmTopicArn=arn ApiConcurrency=7"), []string{"AlarmTopicArn=arn", "ApiConcurrency=7", "AccessLogs=without-role"}, unset},
		"production, unheard": {append(common, "JWKS_URL=u", "PROFILE=production"), nil, "state.yaml"},
		"no such profile":     {append(common, "JWKS_URL=u", "PROFILE=staging"), nil, "state.yaml"},
		"a region":            {append(common, "JWKS_URL=u", "AWS_REGION=eu-west-1"), []string{"in eu-west-1"}, ""},
		"no issuer":           {[]string{"JWT_AUDIENCE=commerce", "JWKS_URL=u"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sam := filepath.Join(t.TempDir(), "sam")
			if err := os.WriteFile(sam, []byte(samThatShowsItsArguments), 0o755); err != nil {
				t.Fatal(err)
			}
			// What deploy needs is taken as made.
			command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-o", "build", "-o", "validate", "deploy", "SAM="+sam,
				"CHECK_SECRET=sh -c '[ $$0 = arn:of-32-bytes ]'")
			command.Dir, command.Env = root, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, test.variables...)
			out, err := command.CombinedOutput()
			arguments := strings.Split(string(out), "\n")
			for _, want := range test.want {
				if !slices.Contains(arguments, want) {
					t.Errorf("%q is not passed: %s, %v", want, out, err)
				}
			}
			if (err == nil) != (test.want != nil) || test.without != "" && strings.Contains(string(out), test.without) {
				t.Errorf("got %v, %s", err, out)
			}
		})
	}
}
