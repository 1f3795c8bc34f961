//go:build !linux

package diskstore_test

func fillUp(string, string) {}
