// Package chaos breaks the whole service while it works and then checks what
// it promises: it runs commerce run in a process of its own, sends records,
// kills functions and the whole at random, fails the table, duplicates and
// delays messages, lets receivers fail, and, once all is calm, holds what was
// sent against what was stored, counted and received. It promises checks that
// use nothing of the service but its table, its queues and its receivers' own
// notes, that every figure in a report was seen, and that nothing outlives a
// run. What is broken at a moment is chosen by a seed, but the moments are the
// machine's: a seed brings the same kinds of trouble, not the same run.
package chaos
