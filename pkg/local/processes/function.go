package processes

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// DefaultInstances bounds the instances of a function that no event source invokes.
const DefaultInstances = 4

// Function is a function as a template declares it.
type Function struct {
	Name        string
	Binary      string            // path of its executable
	Environment map[string]string // the variables that the template gives it
	Timeout     time.Duration     // of an invocation
	MemoryMB    int               // what it is told of its memory; nothing enforces it
	Instances   int               // most at a time
}

// environment is the whole environment of the function's processes: the template's variables and Lambda's own, which a
// template cannot override. The caller's environment is not in it.
func (f Function) environment(region, runtimeAPI, stream string) []string {
	all := map[string]string{
		"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_SESSION_TOKEN": "local",
		"LANG": "en_US.UTF-8", "PATH": "/usr/local/bin:/usr/bin/:/bin:/opt/bin", "TZ": ":UTC",
	}
	maps.Copy(all, f.Environment)
	maps.Copy(all, map[string]string{
		"AWS_EXECUTION_ENV":               "AWS_Lambda_provided.al2023",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(f.MemoryMB),
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     version,
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      stream,
		"AWS_LAMBDA_RUNTIME_API":          runtimeAPI,
		"AWS_REGION":                      region, "AWS_DEFAULT_REGION": region,
		"LAMBDA_TASK_ROOT": filepath.Dir(f.Binary), "_HANDLER": filepath.Base(f.Binary),
	})
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// version is the version of an unpublished function.
const version = "$LATEST"
