// Package rewrite is the command that moves a module's timers to this library.
package rewrite
