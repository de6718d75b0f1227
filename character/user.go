package character

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// UserSettings returns the user's defaults; version 0 if none were ever stored.
func (svc *Service) UserSettings(ctx context.Context, userID string) (*UserSettings, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*UserSettings, error) { return tx.Settings() })
}

// PutUserSettings replaces the user's defaults. Everything that they name must exist
// and be the user's.
//
// Errors: Invalid with the field; NotFound for an unknown id;
// PreconditionFailed when ifVersion is not 0 and not their version.
func (svc *Service) PutUserSettings(ctx context.Context, c *op.Call, s UserSettings, ifVersion int64) (*UserSettings, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := svc.knowsProvider(ctx, c.UserID, s.Provider); err != nil {
		return nil, err
	}
	return op.LastWins(ctx, svc.store, c, ifVersion, func(tx Tx) (*UserSettings, error) {
		before, err := tx.Settings()
		if err != nil {
			return nil, err
		}
		if err := op.CheckVersion(ifVersion, before.Version); err != nil {
			return nil, err
		}
		if err := s.checkNamed(tx); err != nil {
			return nil, err
		}
		after := s
		after.CustomSetting = op.JSONOrNil(s.CustomSetting)
		after.Version, after.DeviceTimeZone = before.Version, before.DeviceTimeZone
		if err := storeSettings(tx, c, &after); err != nil {
			return nil, err
		}
		return &after, svc.replan(tx, after.Zone() != before.Zone())
	})
}

// knowsProvider refuses the name of a provider that does not exist, which would
// fail every turn later. One without a key may be chosen: the key can come. One that is chosen already may
// stay: an owner may have removed it, and the other settings can still be changed.
func (svc *Service) knowsProvider(ctx context.Context, userID, name string) error {
	if name == "" || svc.opts.CheckProvider == nil {
		return nil
	}
	if !fault.Is(svc.opts.CheckProvider(ctx, userID, name), fault.Invalid) {
		return nil
	}
	return svc.store.View(ctx, userID, func(tx Tx) error {
		if before, err := tx.Settings(); err != nil || before.Provider == name {
			return err
		}
		return fault.InvalidField("provider", "value", "unknown provider %q", name)
	})
}

// storeSettings stores s as the next version and emits its event.
func storeSettings(tx Tx, c *op.Call, s *UserSettings) error {
	s.Version++
	s.UpdatedAt = tx.Now()
	if err := tx.PutSettings(s); err != nil {
		return err
	}
	return tx.Emit(resourceEvent(c, "resource.updated", &Resource{Kind: "settings", Version: s.Version}))
}

// AnnounceProvider emits the event that the user's key of a provider was stored or
// deleted. The key itself is in no event.
func (svc *Service) AnnounceProvider(ctx context.Context, c *op.Call, name string, deleted bool) error {
	kind := "resource.updated"
	if deleted {
		kind = "resource.deleted"
	}
	return svc.store.Update(ctx, c.UserID, func(tx Tx) error {
		return tx.Emit(resourceEvent(c, kind, &Resource{Kind: "provider", ID: name}))
	})
}

// changeSettings stores the settings if change reports that it changed them.
func changeSettings(tx Tx, c *op.Call, change func(*UserSettings) bool) error {
	s, err := tx.Settings()
	if err != nil || !change(s) {
		return err
	}
	return storeSettings(tx, c, s)
}

// forgetInSettings removes a deleted resource from the settings.
func forgetInSettings(tx Tx, c *op.Call, id string) error {
	return changeSettings(tx, c, func(s *UserSettings) bool {
		changed := false
		if s.PersonaID == id {
			s.PersonaID, changed = "", true
		}
		for _, g := range []*GlobalResource{&s.GlobalPreset, &s.GlobalWorldBook} {
			if g.ID == id {
				g.ID, g.Enabled, changed = "", false, true
			}
		}
		return changed
	})
}

// Check refuses values out of range.
func (s UserSettings) Check() error {
	if err := s.Validate(""); err != nil {
		return err
	}
	if s.CharacterID != "" {
		return fault.InvalidField("characterId", "unknown", "not allowed in a user's defaults")
	}
	if err := op.CheckLine("userName", s.UserName, maxPersonaName); err != nil {
		return err
	}
	if s.NameDeclined != nil {
		if err := op.CheckLine("nameDeclined", *s.NameDeclined, maxPersonaName); err != nil {
			return err
		}
	}
	if err := checkZone(s.TimeZone); err != nil {
		return err
	}
	for _, g := range []struct {
		field string
		GlobalResource
	}{{"globalPreset", s.GlobalPreset}, {"globalWorldBook", s.GlobalWorldBook}} {
		if g.Enabled && g.ID == "" {
			return fault.InvalidField(g.field+".id", "required", "required when enabled is true")
		}
	}
	switch framework.Priority(s.GlobalWorldBook.Priority) {
	case "", framework.GlobalLater, framework.CharacterLater:
	default:
		return fault.InvalidField("globalWorldBook.priority", "range", "must be %s or %s", framework.GlobalLater, framework.CharacterLater)
	}
	if s.GlobalPreset.Priority != "" {
		return fault.InvalidField("globalPreset.priority", "unknown", "only applies to a world book")
	}
	return checkCustomSetting("customSetting", s.CustomSetting)
}

// checkNamed refuses ids of resources that the user does not have.
func (s UserSettings) checkNamed(tx Tx) error {
	for _, n := range []struct {
		field, id string
		kind      ResourceKind
	}{
		{"personaId", s.PersonaID, Persona},
		{"globalPreset.id", s.GlobalPreset.ID, Preset},
		{"globalWorldBook.id", s.GlobalWorldBook.ID, WorldBook},
	} {
		if n.id == "" {
			continue
		}
		if _, err := tx.Resource(n.kind, n.id); err != nil {
			return op.InField(n.field, err)
		}
	}
	return nil
}

// customSetting is what a user says about the person they play (自设); other
// members are kept.
type customSetting struct {
	Comment    string   `json:"comment"`
	Content    string   `json:"content"`
	Disable    bool     `json:"disable"`
	Position   *int     `json:"position"`
	Constant   *bool    `json:"constant"`
	Key        []string `json:"key"`
	Order      float64  `json:"order"` // null and none are 1
	Depth      int      `json:"depth"`
	Vectorized bool     `json:"vectorized"`
	Global     bool     `json:"global"`
}

// checkCustomSetting refuses a setting with values of another type or out of
// range. An absent one passes.
func checkCustomSetting(field string, doc json.RawMessage) error {
	if op.IsNull(doc) {
		return nil
	}
	if err := op.CheckKind(field, doc, "{"); err != nil {
		return err
	}
	var s customSetting
	if err := op.DecodeLenient(field, doc, &s); err != nil {
		return err
	}
	if utf8.RuneCountInString(s.Content) > maxPersonaText {
		return fault.InvalidField(field+".content", "range", "must have at most %d characters", maxPersonaText)
	}
	c := op.Checks{Path: field}
	op.Between(&c, "position", s.Position, 0, 4)
	op.Between(&c, "depth", &s.Depth, 0, 10_000)
	return c.Err()
}
