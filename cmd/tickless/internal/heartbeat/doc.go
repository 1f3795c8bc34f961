// Package heartbeat is the command that runs a heartbeat server and its clients:
// package idle beside SetReadDeadline and time.Timer, over TCP and in memory.
package heartbeat
