// Package dynamo keeps everything in the one table and is the only user of
// the DynamoDB SDK. Every method takes the organization it acts for and
// reads only that organization's keys; a throttled or unreachable table is
// a fault of kind Unavailable. What the items mean is left to the domain.
package dynamo
