// Package browsertest opens the page of package debug in a real browser. It is a module
// of its own, so that nobody who uses the page has the browser's driver among his
// requirements.
package browsertest
