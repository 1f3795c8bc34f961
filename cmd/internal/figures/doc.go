// Package figures measures CPU time and memory for the commands of this repository, and
// prints figures with their units as tables and JSON.
package figures
