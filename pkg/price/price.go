// Package price holds the list prices that estimates of costs use: on demand in
// us-east-1, in US dollars, without free tiers, volume discounts and taxes. It
// promises one place for each price; other regions differ, and AWS changes
// prices: compare it with the pages named below. What is counted, and how, is
// left to those who import it.
package price

// AsOf is the month whose prices these are.
const AsOf = "2026-06"

// Million divides a count of what is priced by the million.
const Million = 1_000_000.0

// DynamoDB, standard table class (aws.amazon.com/dynamodb/pricing/on-demand).
// A read unit is 4 KB read strongly consistent, a write unit 1 KB. Lambda's
// reads of the stream are free.
const (
	ReadUnits  = 0.125 // a million
	WriteUnits = 0.625 // a million
)

// API Gateway, REST API, the first 333 million requests of a month
// (aws.amazon.com/api-gateway/pricing).
const GatewayRequests = 3.50 // a million

// Lambda on arm64 (aws.amazon.com/lambda/pricing).
const (
	Invocations          = 0.20         // a million
	GigabyteSecondsArm64 = 0.0000133334 // one
)

// SQS, standard queues (aws.amazon.com/sqs/pricing). A request is each 64 KB that
// is sent or received, each deletion, each change of a visibility and each empty
// receive; a batch of up to ten messages is one, by its whole size.
const (
	QueueRequests = 0.40 // a million
	FairRequests  = 0.10 // a million, besides: those of messages with a group
)

// CloudWatch (aws.amazon.com/cloudwatch/pricing). An alarm over metric math costs
// one AlarmMetric for each metric that it reads.
const (
	LogIngestion = 0.50 // a GB
	AlarmMetrics = 0.10 // a metric of an alarm and month
)
