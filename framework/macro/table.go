package macro

import "strings"

// definition is a macro that the language has.
type definition struct {
	Info
	min, max int  // arguments, a block included; max < 0 = any number
	commas   bool // a single argument is a list with commas

	value func(r *run, c *call, args []string) (string, bool) // false = the macro stays
	write func(r *run, o *out, c *call)                       // instead of value: it chooses what to expand
}

func (d *definition) takes(args int) bool { return args >= d.min && (d.max < 0 || args <= d.max) }

// Info describes a macro for people.
type Info struct {
	Name    string   // as people write it
	Aliases []string // other names
	Args    string   // after the name: "::name::value"
	About   string   // one line
	Status  Status
}

// Status says how good a macro is here.
type Status string

// The states of macros.
const (
	Works      Status = ""
	Deprecated Status = "deprecated" // it works; another spelling is better
	NoEffect   Status = "no_effect"  // SillyTavern has a value for it, here it is always the same
)

// Names lists the macros in the order in which they are explained.
func Names() []Info {
	list := make([]Info, len(table))
	for i := range table {
		list[i] = table[i].Info
	}
	return list
}

// definitions are the macros by their names in lower case.
var definitions = map[string]*definition{}

// Macros that are special to the parser or to another macro.
var elseMacro, pickMacro *definition

var table []definition

// The table refers to functions that look into definitions, so it is made when the program starts.
func init() {
	for _, part := range [][]definition{namesTable(), cardTable(), textTable(), chanceTable(), clockTable(), chatTable(), variableTable(), otherTable()} {
		table = append(table, part...)
	}
	for i := range table {
		d := &table[i]
		for _, name := range append([]string{d.Name}, d.Aliases...) {
			definitions[strings.ToLower(name)] = d
		}
	}
	elseMacro, pickMacro = definitions["else"], definitions["pick"]
}

// fixed is a macro without arguments.
func fixed(name, about string, value func(r *run) string, aliases ...string) definition {
	return definition{
		Info:  Info{Name: name, Aliases: aliases, About: about},
		value: func(r *run, _ *call, _ []string) (string, bool) { return value(r), true },
	}
}

// silent is a macro for what NodeST does not have.
func silent(name, args, about, value string, most int) definition {
	return definition{
		Info: Info{Name: name, Args: args, About: about, Status: NoEffect}, max: most,
		value: func(*run, *call, []string) (string, bool) { return value, true },
	}
}

func namesTable() []definition {
	group := func(r *run) string { return either(r.env.Names.Group, r.env.Names.Char) }
	return []definition{
		fixed("user", "name of the user", func(r *run) string { return r.env.Names.User }),
		fixed("char", "name of the character", func(r *run) string { return r.env.Names.Char }),
		fixed("group", "names of all members of a group; else the character's", group, "charIfNotGroup"),
		fixed("groupNotMuted", "the same without muted members", func(r *run) string {
			return either(r.env.Names.GroupNotMuted, group(r))
		}),
		fixed("notChar", "everybody but the character", func(r *run) string {
			return either(r.env.Names.NotChar, r.env.Names.User)
		}),
	}
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func cardTable() []definition {
	field := func(name, about string, text func(c *Card) string, aliases ...string) definition {
		return fixed(name, about, func(r *run) string { return r.field(name, text(&r.env.Card)) }, aliases...)
	}
	return []definition{
		field("description", "description of the character", func(c *Card) string { return c.Description }, "charDescription"),
		field("personality", "personality of the character", func(c *Card) string { return c.Personality }, "charPersonality"),
		field("scenario", "scenario of the chat, or of the card", func(c *Card) string { return c.Scenario }, "charScenario"),
		field("persona", "description of the user", func(c *Card) string { return c.Persona }),
		field("mesExamples", "example dialogues", func(c *Card) string { return c.MesExamples }),
		field("mesExamplesRaw", "example dialogues as they are written", func(c *Card) string { return c.MesExamples }),
		field("charPrompt", "the card's own main prompt", func(c *Card) string { return c.CharPrompt }),
		field("charInstruction", "the card's own instruction behind the chat", func(c *Card) string { return c.CharInstruction }, "charJailbreak"),
		field("charDepthPrompt", "the card's note inside the chat", func(c *Card) string { return c.DepthPrompt }),
		field("creatorNotes", "notes of the card's creator", func(c *Card) string { return c.CreatorNotes }, "charCreatorNotes"),
		fixed("charVersion", "version of the card", func(r *run) string { return r.env.Card.Version }, "version", "char_version"),
		{
			Info: Info{Name: "greeting", Aliases: []string{"charFirstMessage"}, Args: "::n", About: "a greeting of the card: 0 is the first message"}, max: 1,
			value: greeting,
		},
		{
			Info:  Info{Name: "original", About: "in a card's own prompt: the text that it replaces, once"},
			value: originalText,
		},
	}
}

func greeting(r *run, _ *call, args []string) (string, bool) {
	at := 0
	if len(args) > 0 {
		n, ok := integer(args[0])
		if !ok {
			return "", false
		}
		at = n
	}
	if at < 0 || at >= len(r.env.Card.Greetings) {
		return "", true
	}
	return r.field("greeting", r.env.Card.Greetings[at]), true
}

func originalText(r *run, _ *call, _ []string) (string, bool) {
	o := r.env.original
	if o == nil {
		return "", false
	}
	if o.used {
		return "", true
	}
	o.used = true
	return o.text, true
}

func textTable() []definition {
	repeated := func(name, about, text string) definition {
		return definition{Info: Info{Name: name, Args: "::n", About: about}, max: 1, value: func(_ *run, _ *call, args []string) (string, bool) {
			n := 1
			if len(args) > 0 {
				var ok bool
				if n, ok = integer(args[0]); !ok {
					return "", false
				}
			}
			return strings.Repeat(text, min(max(n, 0), maxRepeat)), true
		}}
	}
	return []definition{
		repeated("newline", "line breaks", "\n"),
		repeated("space", "spaces", " "),
		fixed("noop", "nothing", func(*run) string { return "" }),
		{Info: Info{Name: "//", Args: " text", About: "a comment; also {{//}}…{{///}}"}, max: 1, write: func(*run, *out, *call) {}},
		{Info: Info{Name: "trim", About: "removes itself and the line breaks around it; {{trim}}…{{/trim}} removes blanks at the ends"}, max: 1, write: writeTrim},
		{Info: Info{Name: "reverse", Args: "::text", About: "the text backwards"}, min: 1, max: 1, value: func(_ *run, _ *call, args []string) (string, bool) {
			return reverse(args[0]), true
		}},
		{Info: Info{Name: "if", Args: " condition", About: "{{if x}}…{{else}}…{{/if}}: false are an empty text, 0, false and off; ! negates"}, min: 2, max: 2, write: writeIf},
		{Info: Info{Name: "else", About: "separates the branches of if"}, value: func(*run, *call, []string) (string, bool) { return "", false }},
	}
}

// maxRepeat bounds the argument of newline and space.
const maxRepeat = 1000

func writeTrim(r *run, o *out, c *call) {
	if len(c.args) == 0 {
		o.trims = append(o.trims, len(o.b))
		return
	}
	o.value(strings.Trim(r.arg(c, 0, c.args[0]), blanks))
}

func reverse(s string) string {
	runes := []rune(s)
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes)
}

func variableTable() []definition {
	var list []definition
	for _, global := range []bool{false, true} {
		scope, whose, alias := "", "of the chat", ""
		if global {
			scope, whose, alias = "global", "of the user", "global"
		}
		add := func(name, args, about string, count int, value func(v *Vars, args []string) string, aliases ...string) {
			list = append(list, definition{
				Info: Info{Name: name, Aliases: aliases, Args: args, About: about + " a variable " + whose}, min: count, max: count,
				value: func(r *run, _ *call, args []string) (string, bool) {
					v := r.vars(global)
					args[0] = strings.TrimSpace(args[0])
					r.env.spent.charge(v.cost(args[0]))
					return value(v, args), true
				},
			})
		}
		nothing := func(change func(v *Vars, args []string)) func(v *Vars, args []string) string {
			return func(v *Vars, args []string) string {
				change(v, args)
				return ""
			}
		}
		step := func(by string) func(v *Vars, args []string) string {
			return func(v *Vars, args []string) string {
				v.add(args[0], by)
				now, _ := v.Get(args[0])
				return now
			}
		}
		add("set"+scope+"var", "::name::value", "sets", 2, nothing(func(v *Vars, a []string) { v.Set(a[0], a[1]) }))
		add("add"+scope+"var", "::name::value", "adds to", 2, nothing(func(v *Vars, a []string) { v.add(a[0], a[1]) }))
		add("inc"+scope+"var", "::name", "adds 1 to, and gives,", 1, step("1"))
		add("dec"+scope+"var", "::name", "takes 1 from, and gives,", 1, step("-1"))
		add("get"+scope+"var", "::name", "gives", 1, func(v *Vars, a []string) string {
			text, _ := v.Get(a[0])
			return text
		})
		add("has"+scope+"var", "::name", "true or false: there is", 1, func(v *Vars, a []string) string {
			if _, there := v.Get(a[0]); there {
				return "true"
			}
			return "false"
		}, alias+"varexists")
		add("delete"+scope+"var", "::name", "removes", 1, nothing(func(v *Vars, a []string) { v.remove(a[0]) }), "flush"+scope+"var")
		add("set"+scope+"varkey", "::name::key::value", "sets a member of the JSON in", 3, nothing(func(v *Vars, a []string) {
			v.setKey(a[0], strings.TrimSpace(a[1]), a[2])
		}))
		add("get"+scope+"varkey", "::name::key", "gives a member of the JSON in", 2, func(v *Vars, a []string) string {
			return v.key(a[0], strings.TrimSpace(a[1]))
		})
	}
	return list
}
