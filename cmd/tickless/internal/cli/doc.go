// Package cli is shared by the program's commands: exit codes and errors.
package cli
