package worldinfo

// Timed are the timed effects of a chat, as SillyTavern keeps them in its metadata
// (timedWorldInfo). Keys are ids of entries ("book.uid").
type Timed struct {
	Sticky   map[string]Effect `json:"sticky"`
	Cooldown map[string]Effect `json:"cooldown"`
}

// Effect is a sticky time or a cooldown. Start and End count the messages of the chat.
type Effect struct {
	// Hash is that of the entry, so that an edited entry loses the effect. One that is not ours is taken
	// over without a look.
	Hash      any  `json:"hash,omitempty"`
	Start     int  `json:"start"`
	End       int  `json:"end"`
	Protected bool `json:"protected"` // it stays when the chat gets shorter
}
