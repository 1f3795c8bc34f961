// Package browsertest opens the page of package debug in a real browser.
package browsertest
