package tavern

import (
	"strings"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
	"nodest/llm"
)

// entryRoles are the roles of entries at a depth, by SillyTavern's numbers.
var entryRoles = []llm.Role{llm.System, llm.User, llm.Assistant}

// Books reports on every entry of the world books in c as world, which a build from c returned, decided
// about it, in the order in which entries are looked at.
func (c *Compiled) Books(world *worldinfo.Output) []framework.BookEntry {
	list := make([]framework.BookEntry, len(world.Verdicts))
	for i, v := range world.Verdicts {
		list[i] = framework.BookEntry{
			Source: framework.SourceBook, ID: v.ID, Name: v.Name, Fires: v.Fires, Why: v.Why, Key: v.Key, Reason: v.Reason, Tokens: v.Tokens, Role: llm.System,
		}
		if at := strings.LastIndexByte(v.ID, '.'); at >= 0 && c.global[v.ID[:at]] {
			list[i].Source = framework.SourceGlobalBook
		}
		e := c.world.Entry(v.ID)
		if e == nil {
			continue
		}
		list[i].Position, list[i].Order = int(e.Position), e.Order
		if e.Position == card.AtDepth {
			list[i].Depth = &e.Depth
			if e.Role >= 0 && e.Role < len(entryRoles) {
				list[i].Role = entryRoles[e.Role]
			}
		}
	}
	return list
}
