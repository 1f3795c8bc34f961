package storetest

import "github.com/tickless/tickless/durable/store"

// touch notes that a command has changed a task of the model, so that it has a new version.
func (m *model) touch(t *modelTask) {
	t.newVersion, t.versionBefore = true, m.latestVersion
}

// adoptVersion takes a new version over from an entry of the store.
func (m *model) adoptVersion(e *store.Entry) {
	if t := m.tasks[e.ID]; t != nil && t.newVersion {
		m.check(e.Version > t.versionBefore, "the version %d came after %d: %+v", e.Version, t.versionBefore, *e)
		t.Version, t.newVersion = e.Version, false
		m.latestVersion = max(m.latestVersion, e.Version)
	}
}

// hasVersion reports whether a command with IfVersion applies to a task.
func (t *modelTask) hasVersion(v int64) bool { return !t.newVersion && t.Version == v }
