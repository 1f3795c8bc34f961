package jobs

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// zones caches the time zones by name, because loading a zone reads a file.
var zones struct {
	sync.Mutex
	byName map[string]*time.Location
}

// maxCachedZones is more than the zone database has. A file system that ignores case has
// more spellings.
const maxCachedZones = 1000

// loadZone returns the time zone with a name: see ParseCron.
func loadZone(name string) (*time.Location, error) {
	switch name {
	case "":
		return time.UTC, nil
	case "Local":
		return time.Local, nil
	}
	zones.Lock()
	defer zones.Unlock()
	if z := zones.byName[name]; z != nil {
		return z, nil
	}
	if err := checkZoneName(name); err != nil {
		return nil, err
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the zone %.200q: %w (if the system has no zone files, import time/tzdata)", name, err)
	}
	if zones.byName == nil || len(zones.byName) == maxCachedZones {
		zones.byName = make(map[string]*time.Location)
	}
	zones.byName[name] = z
	return z, nil
}

// checkZoneName refuses names of files that are not the same zone on each machine, and
// other spellings of a name, such as "Europe/./Berlin".
func checkZoneName(name string) error {
	first, _, _ := strings.Cut(name, "/")
	switch first {
	case "posix", "right", "localtime", "posixrules":
		return fmt.Errorf("the zone %.200q is not one of the zone database", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) < 2 || part[0] < 'A' || part[0] > 'Z' || strings.Trim(part, zoneNameChars) != "" {
			return fmt.Errorf("the zone %.200q is not spelled as in the zone database", name)
		}
	}
	return nil
}

const zoneNameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-"
