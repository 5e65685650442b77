// Package sqsqueue sends and hides messages of SQS queues and is the only user
// of its SDK in the functions. A send is done when every message was
// accepted; one that SQS cannot take for the moment is a fault of kind
// Unavailable, and sending all of them again is always safe for the readers.
// Receiving, deleting and redriving are left to the event source, which
// drives the functions.
package sqsqueue
