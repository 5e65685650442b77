// Package state holds the template of the state's stack: the table, the queues, the secrets and the logs, which outlive
// every version of the code. template.yaml, the service's stack, takes their names and ARNs as parameters; those are the
// outputs of the same names here. `make deploy` deploys this stack, and then the service's with what it gave out.
// pkg/local/template joins both for local runs and tests.
package state

import _ "embed" // the template

// Template is the template of the state's stack. Callers must not change it.
//
//go:embed state.yaml
var Template []byte
