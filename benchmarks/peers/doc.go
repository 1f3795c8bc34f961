// Package peers measures Tickless beside other timer libraries. It is a module
// of its own so that they stay out of the core's go.mod.
package peers
