package worldinfo

// Why an entry is used.
const (
	WhyKey       = "key"
	WhyConstant  = "constant"
	WhySticky    = "sticky"    // it came in before and stays
	WhyDecorator = "decorator" // @@activate
	WhyForced    = "forced"    // Input.Forced
)

// Why an entry is not used.
const (
	ReasonDisabled    = "disabled"
	ReasonTrigger     = "trigger"     // for other kinds of replies
	ReasonCharacter   = "character"   // for other characters, by name
	ReasonTags        = "tags"        // for other characters, by tag
	ReasonDelay       = "delay"       // the chat is too short
	ReasonCooldown    = "cooldown"    // it was in lately
	ReasonLevel       = "level"       // its level of recursion was not reached
	ReasonRecursion   = "recursion"   // keys that only the texts of other entries have do not count
	ReasonDecorator   = "decorator"   // @@dont_activate, @@is_greeting and their like
	ReasonNoKeys      = "no_keys"     // it has none
	ReasonKey         = "no_key"      // none of its keys was found
	ReasonSecondary   = "secondary"   // its secondary keys do not agree
	ReasonExclude     = "exclude"     // a key of @@exclude_keys was found
	ReasonGroup       = "group"       // another member of its group is used
	ReasonProbability = "probability" // the number drawn was above its probability
	ReasonBudget      = "budget"      // it did not fit
	ReasonEmpty       = "empty"       // it is used, but nothing is in its text
	ReasonOutlet      = "outlet"      // it is used, but its outlet has no name
	ReasonPosition    = "position"    // it is used, but its position does not exist
)

// Where a key was found.
const (
	InMessage   = "message"
	InPersona   = "persona"
	InCard      = "card"
	InInjection = "injection" // Input.Injections
	InRecursion = "recursion" // the text of another entry
	InAll       = "all"       // a pattern in the texts as a whole, or a blank key
)

// Verdict says what became of an entry.
type Verdict struct {
	ID     string `json:"id"` // "book.uid"
	Name   string `json:"name"`
	Fires  bool   `json:"fires"`
	Why    string `json:"why,omitempty"`    // it is used
	Reason string `json:"reason,omitempty"` // it is not

	Key     string   `json:"key,omitempty"`     // the key that fired, as written
	In      string   `json:"in,omitempty"`      // where it was found
	Message *int     `json:"message,omitempty"` // its index in Input.Messages
	Missing []string `json:"missing,omitempty"` // secondary keys that were not found
	Found   []string `json:"found,omitempty"`   // secondary keys that were found

	Draw   *Draw  `json:"draw,omitempty"`  // the number drawn for its probability
	Group  *Group `json:"group,omitempty"` // the inclusion group that decided about it
	Until  *int   `json:"until,omitempty"` // number of messages at which its delay, cooldown or sticky time ends
	Pass   int    `json:"pass"`            // the pass that decided, from 1; 0 = none
	Level  int    `json:"level,omitempty"` // the level of recursion of that pass
	Tokens int    `json:"tokens"`          // its text, with macros replaced where it is used; counted with Input.Explain alone
}

// Draw is a number that was drawn for a probability. Above Percent the entry is not used.
type Draw struct {
	Drawn   float64 `json:"drawn"` // in percent
	Percent float64 `json:"percent"`
}

// Group says how an inclusion group decided.
type Group struct {
	Name string  `json:"name"`
	How  string  `json:"how"`            // sticky, score, active, override, weight
	Won  string  `json:"won,omitempty"`  // id of the entry that is used instead; "" = several
	Drew float64 `json:"drew,omitempty"` // with weight: the number drawn, between 0 and the sum of the weights
}
