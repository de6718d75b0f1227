package store_test

import (
	"testing"

	"nodest/character"
	"nodest/nodest"
)

// Storing a device's time zone changes neither the settings nor their version.
func TestADeviceTimeZoneDoesNotChangeTheSettings(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		expect := func(what, zone, name string, version int64) {
			t.Helper()
			e.view(func(tx nodest.Tx) error {
				s, err := tx.Characters.Settings()
				if err == nil && (s.DeviceTimeZone != zone || s.UserName != name || s.Version != version) {
					e.Errorf("%s: %+v", what, s)
				}
				return err
			})
		}
		expect("at first", "", "", 0)
		e.update(func(tx nodest.Tx) error { return tx.Characters.PutDeviceZone("Asia/Tokyo") })
		expect("stored", "Asia/Tokyo", "", 0)
		e.update(func(tx nodest.Tx) error {
			return tx.Characters.PutSettings(&character.UserSettings{Version: 1, UserName: "Ann", DeviceTimeZone: "Asia/Seoul"})
		})
		expect("with settings", "Asia/Tokyo", "Ann", 1)
		e.update(func(tx nodest.Tx) error { return tx.Characters.PutDeviceZone("Europe/Berlin") })
		expect("stored again", "Europe/Berlin", "Ann", 1)
	})
}
