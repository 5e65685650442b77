package runner

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/local/template"
)

func TestFunctionHasAnInstancePerConcurrentInvocation(t *testing.T) {
	queue := func(name string, most int) []template.QueueSource {
		return []template.QueueSource{{Queue: name, MaxConcurrency: most}}
	}
	deliveries := func(most int) []template.QueueSource { return queue("DeliveriesQueue", most) }
	for name, c := range map[string]struct {
		function template.Function
		want     int
	}{
		"behind the API":      {template.Function{Name: "api"}, 4},
		"of a stream":         {template.Function{Name: "indexer", Streams: []template.StreamSource{{ParallelizationFactor: 1}}}, 8},
		"of a wide stream":    {template.Function{Name: "dispatcher", Streams: []template.StreamSource{{ParallelizationFactor: 10}}}, 16},
		"of a queue":          {template.Function{Name: "worker", Queues: deliveries(200)}, 16},
		"of a small queue":    {template.Function{Name: "worker", Queues: deliveries(3)}, 3},
		"of two queues":       {template.Function{Name: "worker", Queues: append(deliveries(200), deliveries(5)...)}, 21},
		"of queue and clock":  {template.Function{Name: "sweeper", Queues: queue("IndexJobsQueue", 10), Schedules: []template.Schedule{{}}}, 3},
		"of records' queue":   {template.Function{Name: "ingest", Queues: queue("RecordsQueue", 50)}, 2},
		"of an endless queue": {template.Function{Name: "worker", Queues: deliveries(0)}, 16},
	} {
		if got := instances(c.function); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestAProcessHasTheTemplatesEnvironmentAndWhatStandsForAWS(t *testing.T) {
	r := &run{
		cfg: Config{Logger: slog.New(slog.DiscardHandler)}, state: &state{ServiceKey: []byte{1, 2, 3}},
		servers: &servers{tableURL: "http://127.0.0.1:1", queueURL: "http://127.0.0.1:2"},
	}
	declared := map[string]string{"TABLE_NAME": "commerce", "SERVICE_KEY": "", "AWS_ENDPOINT_URL_SQS": ""}
	want := map[string]string{
		"TABLE_NAME": "commerce", "SERVICE_KEY": "AQID",
		"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:2",
		"AWS_ENDPOINT_URL_EVENTBRIDGE": "http://127.0.0.1:2", // which refuses events
		"AWS_LAMBDA_LOG_FORMAT":        "JSON", "AWS_LAMBDA_LOG_LEVEL": "ERROR", "METRICS_NAMESPACE": "",
	}
	if diff := cmp.Diff(want, r.environment(declared)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if declared["SERVICE_KEY"] != "" {
		t.Error("the template's own environment was changed")
	}
}
