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
	ReadUnits     = 0.125 // a million
	WriteUnits    = 0.625 // a million
	TableStorage  = 0.25  // a GB and month
	PointInTime   = 0.20  // a GB and month of backup
	RestoredTable = 0.15  // a GB
	TableExport   = 0.10  // a GB, of an export to S3
)

// API Gateway, REST API, the first 333 million requests of a month
// (aws.amazon.com/api-gateway/pricing).
const GatewayRequests = 3.50 // a million

// Lambda (aws.amazon.com/lambda/pricing).
const (
	Invocations          = 0.20         // a million
	GigabyteSecondsArm64 = 0.0000133334 // one
	GigabyteSecondsX86   = 0.0000166667 // one
)

// SQS, standard queues (aws.amazon.com/sqs/pricing). A request is each 64 KB that
// is sent or received, each deletion, each change of a visibility and each empty
// receive; a batch of up to ten messages is one, by its whole size.
const (
	QueueRequests = 0.40 // a million
	FairRequests  = 0.10 // a million, besides: those of messages with a group
)

// CloudWatch and X-Ray (aws.amazon.com/cloudwatch/pricing, aws.amazon.com/xray/pricing).
// An alarm over metric math costs one AlarmMetric for each metric that it reads.
const (
	LogIngestion = 0.50 // a GB
	LogStorage   = 0.03 // a GB and month
	Metrics      = 0.30 // a custom metric and month: a name with one set of dimensions
	AlarmMetrics = 0.10 // a metric of an alarm and month
	Dashboards   = 3.00 // one and month, the first three of an account are free
	Traces       = 5.00 // a million recorded
)

// Secrets Manager (aws.amazon.com/secrets-manager/pricing), WAF
// (aws.amazon.com/waf/pricing), transfer to the internet
// (aws.amazon.com/ec2/pricing/on-demand) and S3 (aws.amazon.com/s3/pricing).
const (
	Secrets      = 0.40  // one and month
	SecretReads  = 5.00  // a million
	WebACLs      = 5.00  // one and month
	WebACLRules  = 1.00  // one and month
	WAFRequests  = 0.60  // a million
	TransferOut  = 0.09  // a GB, the first 10 TB of a month
	S3Storage    = 0.023 // a GB and month
	S3PutObjects = 5.00  // a million
)
