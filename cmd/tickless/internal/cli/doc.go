// Package cli is shared by the program's commands: exit codes and errors, flag values,
// and the output of tables and JSON.
package cli
