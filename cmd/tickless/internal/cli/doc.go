// Package cli is what the commands of the program have in common: exit codes and
// errors, the values of flags, and the tables and JSON that they print.
package cli
