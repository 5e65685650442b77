package faults

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fault is one way in which a request may fail.
type Fault string

// The faults. Those that end a request exclude each other, and the first of
// this order wins; a request may be delayed, stale and partly processed at
// once.
const (
	// Delay answers late, by up to Config.MaxDelay.
	Delay Fault = "delay"
	// LostRequest cuts the connection before anything is done.
	LostRequest Fault = "lostRequest"
	// Timeout does nothing and holds the connection until the client gives up,
	// at most Config.MaxHang.
	Timeout Fault = "timeout"
	// Throttle refuses with ProvisionedThroughputExceededException or
	// ThrottlingException, a transaction also as cancelled for that reason.
	Throttle Fault = "throttle"
	// InternalError answers 500 and does nothing.
	InternalError Fault = "internalError"
	// Conflict refuses a write with TransactionConflictException, a
	// transaction with TransactionCanceledException and the reason of one of
	// its items.
	Conflict Fault = "conflict"
	// FalseError does the write and answers 500.
	FalseError Fault = "falseError"
	// LostAnswer does what was asked and cuts the connection, before the answer,
	// which the SDK notices and tries again, or in the middle of it, after
	// which it does not.
	LostAnswer Fault = "lostAnswer"
	// Unprocessed leaves some items of a batch undone and returns them so;
	// statements of a batch fail, some or all, for want of throughput.
	Unprocessed Fault = "unprocessed"
	// StaleRead answers an eventually consistent read with what the table held
	// some writes ago, all of them within Config.Stale.
	StaleRead Fault = "staleRead"
)

// All lists the faults.
func All() []Fault {
	return []Fault{
		Delay, LostRequest, Timeout, Throttle, InternalError, Conflict,
		FalseError, LostAnswer, Unprocessed, StaleRead,
	}
}

// Rates says how likely each fault is, from 0 to 1. Faults that it does not
// name do not happen.
type Rates map[Fault]float64

// Every returns the same rate for all of these faults, without any for each
// that there is.
func Every(rate float64, of ...Fault) Rates {
	if len(of) == 0 {
		of = All()
	}
	rates := Rates{}
	for _, f := range of {
		rates[f] = rate
	}
	return rates
}

// ParseRates reads rates as a command line gives them, such as
// "throttle=0.1,staleRead=0.3". "all" stands for every fault; what comes
// later counts.
func ParseRates(text string) (Rates, error) {
	rates := Rates{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, found := strings.Cut(strings.TrimSpace(part), "=")
		rate, err := strconv.ParseFloat(number, 64)
		if !found || err != nil || !(rate >= 0 && rate <= 1) {
			return nil, fmt.Errorf("rate %q: want a fault and its rate from 0 to 1, such as throttle=0.1", part)
		}
		switch {
		case name == "all":
			maps.Copy(rates, Every(rate))
		case slices.Contains(All(), Fault(name)):
			rates[Fault(name)] = rate
		default:
			return nil, fmt.Errorf("rate %q: no such fault, there are %q", part, All())
		}
	}
	return rates, nil
}
