package bench

import (
	"context"
	"fmt"
)

// Prices in US dollars, on demand, in us-east-1: of DynamoDB's standard table
// class (aws.amazon.com/dynamodb/pricing/on-demand), of a REST API's first 333
// million requests a month (aws.amazon.com/api-gateway/pricing) and of Lambda
// on arm64 (aws.amazon.com/lambda/pricing).
const (
	readUnitPrice    = 0.125        // a million
	writeUnitPrice   = 0.625        // a million
	gatewayPrice     = 3.50         // a million requests
	invocationPrice  = 0.20         // a million invocations
	gigabyteSecond   = 0.0000133334 // one
	million          = 1_000_000.0
	apiMemory        = 1.0 // GB, as template.yaml says
	authorizerMemory = 0.5 // GB, likewise
)

// Lambda is charged by the time of an invocation. These are assumed, generous
// for what the sections of the handler and of records by id measure: at 1 GB a
// function has 0.58 of a processor, and a read of the table takes some
// milliseconds of waiting.
const (
	apiSeconds        = 0.010
	authorizerSeconds = 0.005
)

// measureCosts is the section of what a million cost.
func measureCosts(ctx context.Context, b *bench) error {
	if len(b.spent) == 0 {
		if err := measureUnits(ctx, b); err != nil {
			return err
		}
	}
	t := b.table("A million of", "read units of one", "write units of one", "US dollars")
	t.note = fmt.Sprintf("On demand in us-east-1: $%.3f a million write units, $%.3f a million read units, $%.2f a million REST requests; "+
		"Lambda on arm64 $%.2f a million invocations and $%.10f a GB-second, assuming %.0f ms at %.1f GB for the API and %.0f ms at %.1f GB for "+
		"the authorizer, which API keys ask on every request. Without storage, stream reads by Lambda (free), logs and transfer.",
		writeUnitPrice, readUnitPrice, gatewayPrice, invocationPrice, gigabyteSecond, apiSeconds*1000, apiMemory, authorizerSeconds*1000, authorizerMemory)
	for i := range b.spent {
		s := &b.spent[i]
		t.add("table: "+s.name, "", amount(total(s.reads)), amount(total(s.writes)), fmt.Sprintf("%.3f", s.dollars()))
	}
	functions := 2*invocationPrice + million*gigabyteSecond*(apiSeconds*apiMemory+authorizerSeconds*authorizerMemory)
	t.add("Lambda: API and authorizer, each request", "", "", "", fmt.Sprintf("%.3f", functions))
	t.add("API Gateway: each request", "", "", "", fmt.Sprintf("%.3f", gatewayPrice))
	return nil
}
