// Package browsertest tests the page of package debug in a real browser.
package browsertest
