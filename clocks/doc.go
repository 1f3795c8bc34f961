// Package clocks contains only tests: of what packages clockwork and k8s have in common, and of
// each of them.
package clocks
