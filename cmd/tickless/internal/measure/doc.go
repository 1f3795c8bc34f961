// Package measure reads what the figures of the program are made of: the CPU time
// and the memory of the process.
package measure
