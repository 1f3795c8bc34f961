// Package migrate finds the timers of a program that can be Tickless's, and
// rewrites them.
package migrate
