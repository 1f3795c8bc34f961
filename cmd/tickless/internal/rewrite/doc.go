// Package rewrite is the command migrate: it rewrites a module's timers to use this
// library.
package rewrite
