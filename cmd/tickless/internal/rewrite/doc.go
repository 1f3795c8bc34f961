// Package rewrite is the migrate command: it rewrites a module's timers to use this
// library.
package rewrite
