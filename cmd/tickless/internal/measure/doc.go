// Package measure reads the CPU time and the memory of the process.
package measure
