package character

import (
	"context"
	"sync"
	"time"

	"nodest/internal/fault"
)

// A user's days are those of a time zone: the one of the settings, else the one that
// a device reported last, else UTC.

// zones are the time zones that were asked for, by name: reading one takes a while.
var zones sync.Map // string: *time.Location

// loadZone returns a time zone by its IANA name, which begins with a capital letter. It
// rejects other names that the server's zone files may have: the server's own zone
// (Local, localtime, posixrules), variants (posix/…, right/…) and Factory.
func loadZone(name string) (*time.Location, bool) {
	if name == "" || name[0] < 'A' || name[0] > 'Z' || name == "Local" || name == "Factory" {
		return nil, false
	}
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), true
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, false
	}
	zones.Store(name, zone)
	return zone, true
}

// Zone is that of the user's days.
func (s *UserSettings) Zone() *time.Location {
	for _, name := range []string{s.TimeZone, s.DeviceTimeZone} {
		if zone, ok := loadZone(name); ok {
			return zone
		}
	}
	return time.UTC
}

func checkZone(name string) error {
	if _, ok := loadZone(name); !ok && name != "" {
		return fault.InvalidField("timeZone", "value", "unknown time zone %.64q; use an IANA name such as Europe/Berlin", name)
	}
	return nil
}

// DeviceZone notes the time zone of a user's device. It applies until another device
// reports a different one, and only while the settings name none. The version of the
// settings does not change.
//
// Errors: Invalid for an unknown name.
func (svc *Service) DeviceZone(ctx context.Context, userID, name string) (*UserSettings, error) {
	if name == "" {
		return nil, fault.InvalidField("timeZone", "required", "required")
	}
	if err := checkZone(name); err != nil {
		return nil, err
	}
	s, err := svc.UserSettings(ctx, userID)
	if err != nil || s.DeviceTimeZone == name {
		return s, err
	}
	before := s.Zone()
	s.DeviceTimeZone = name
	return s, svc.store.Update(ctx, userID, func(tx Tx) error {
		if err := tx.PutDeviceZone(name); err != nil {
			return err
		}
		return svc.replan(tx, s.Zone() != before)
	})
}
