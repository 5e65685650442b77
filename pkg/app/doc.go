// Package app is the composition root: it reads the environment, makes the
// clients and wires each function from the packages that do the work. A
// function is wired the same way in Lambda, under an emulator and in the
// local runner, and every fault in its configuration shows when it starts.
// It decides nothing about the service's behaviour.
package app
